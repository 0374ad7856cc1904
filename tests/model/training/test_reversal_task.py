"""The task of the README's walk-through: letters in, the same letters backwards out."""

from model.training.data import read_pairs
from model.training.reversal_task import DEV_LINES, LONGEST, TRAIN_LINES, main, reversals


def test_each_target_is_its_source_backwards():
    for source, target in reversals(200, seed=1):
        assert target.split(" ") == source.split(" ")[::-1]
        assert 3 <= len(source.split(" ")) <= LONGEST


def test_the_files_are_parallel_data_and_share_no_line(tmp_path):
    main(["--out", str(tmp_path / "letters")])
    train, dev = (read_pairs([tmp_path / "letters" / name]) for name in ("train.tsv", "dev.tsv"))
    assert (len(train), len(dev)) == (TRAIN_LINES, DEV_LINES)
    assert not {source for source, _ in train} & {source for source, _ in dev}


def test_the_same_seed_gives_the_same_lines():
    assert reversals(20, seed=3) == reversals(20, seed=3) != reversals(20, seed=4)
