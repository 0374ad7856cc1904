"""Sequences and mappings whose items are made on demand: what a Trace of a long text keeps of its layers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

Key = TypeVar("Key")
Item = TypeVar("Item")


class MappingOnDemand(Mapping[Key, Item]):
    """`make(key)` for each of `keys`; no item is kept here."""

    def __init__(
        self, keys: Sequence[Key], make: Callable[[Key], Item], nbytes: int = 0, known: Mapping[Key, Any] | None = None
    ) -> None:
        self._keys, self._make = dict.fromkeys(keys), make
        self.nbytes = nbytes
        """of what the items are made from, and of those that are kept there"""
        self.known = known or {}
        """the part of each item that can be had without making it"""

    def __getitem__(self, key: Key) -> Item:
        if key not in self._keys:
            raise KeyError(key)
        return self._make(key)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __iter__(self) -> Iterator[Key]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


class SequenceOnDemand(Sequence[Item]):
    """`make(address)` for each of `addresses`, in their order."""

    def __init__(self, addresses: Sequence[Key], make: Callable[[Key], Item]) -> None:
        self._addresses, self._make = tuple(addresses), make

    def __getitem__(self, index: int | slice) -> "Item | SequenceOnDemand[Item]":
        chosen = self._addresses[index]
        return SequenceOnDemand(chosen, self._make) if isinstance(index, slice) else self._make(chosen)

    def __len__(self) -> int:
        return len(self._addresses)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)


def joined(parts: Sequence[Sequence[Item]]) -> Sequence[Item]:
    """The items of all parts, one part after the other, none of them made."""
    places = [(part, i) for part in parts for i in range(len(part))]
    return SequenceOnDemand(places, lambda place: place[0][place[1]])
