// needs: shared/mount.js
// The course component: a teacher's step above a page, or all steps with the answers. What a student writes stays in
// the local storage of this browser; it leaves as a file or through the clipboard, and the server never sees it.

class View {
  constructor(root) {
    this.root = root;
  }

  update({ data }) {
    // The same step again: what is being typed stays as it is.
    const drawn = JSON.stringify(data);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.data = data;
    this.answers = read(this.place());
    this.root.replaceChildren(...(data.number === null ? this.overview() : this.step()));
  }

  place() {
    return `attention-explorer-course-${this.data.name}`;
  }

  step() {
    const { title, steps, number, here, overview } = this.data;
    const step = steps[number];
    const way = element("div", "way");
    way.append(element("span", "title", title || tr("Course")), element("span", "", tr("Step {number} of {count}", { number: number + 1, count: steps.length })));
    if (number > 0) way.append(link(`← ${tr("Back")}`, steps[number - 1].link));
    if (number + 1 < steps.length) way.append(link(`${tr("Next")} →`, steps[number + 1].link, "go"));
    way.append(link(number + 1 < steps.length ? tr("All steps") : tr("All steps and my answers"), overview));
    const nodes = [way];
    if (!here) {
      const back = element("p", "", tr("This step is on another page: "));
      back.append(link(step.view, step.link));
      nodes.push(back);
    }
    return [...nodes, ...this.task(step, number)];
  }

  overview() {
    const { steps } = this.data;
    const list = element("ol");
    steps.forEach((step, i) => {
      const item = element("li");
      item.append(link(step.view, step.link), ...this.task(step, i));
      list.append(item);
    });
    const name = element("input", "name");
    name.placeholder = tr("Your name, for the file (optional)");
    name.setAttribute("aria-label", tr("Your name, for the file"));
    name.value = this.answers.name ?? "";
    name.addEventListener("input", () => this.keep("name", name.value));
    const message = element("output", "note");
    const actions = element("div", "way");
    actions.append(
      button(tr("Download answers"), tr("saves the questions and your answers as a CSV file"), () => this.download()),
      button(tr("Copy answers"), tr("copies the same as text"), async () => {
        message.textContent = (await copy(this.text())) ? tr("Copied ✓") : tr("The browser does not allow it: download them instead.");
      }),
      button(tr("Print"), tr("prints this page with your answers"), () => window.print()),
      link(tr("Leave the course"), "./", "leave"),
      message,
    );
    const start = element("div", "way");
    start.append(element("span", "", tr("Steps: {count}", { count: steps.length })), link(tr("Start"), steps[0].link, "go"));
    return [
      start,
      list,
      name,
      element("p", "note", tr("Your answers are kept in this browser only. Nothing is sent to the server.")),
      actions,
    ];
  }

  // What to do, the question, and a field for the answer.
  task(step, number) {
    const nodes = step.do ? [element("p", "", step.do)] : [];
    if (!step.ask) return nodes;
    const field = element("textarea");
    const typed = element("div", "typed", this.answers[number] ?? "");
    field.rows = 2;
    field.value = typed.textContent;
    field.setAttribute("aria-label", tr("Answer to step {number}: {question}", { number: number + 1, question: step.ask }));
    field.placeholder = tr("Your answer, kept in this browser");
    field.addEventListener("input", () => {
      typed.textContent = field.value;
      this.keep(number, field.value);
    });
    return [...nodes, element("p", "ask", step.ask), field, typed];
  }

  keep(key, value) {
    this.answers[key] = value;
    try {
      localStorage.setItem(this.place(), JSON.stringify(this.answers));
    } catch {
      // Without storage, as in some private windows, an answer lasts as long as its page.
    }
  }

  rows() {
    const asked = this.data.steps.map((step, i) => ({ ...step, i })).filter((step) => step.ask);
    return asked.map((step) => [step.i + 1, step.view, step.ask, this.answers[step.i] ?? ""]);
  }

  text() {
    const rows = this.rows().map(([number, , question, answer]) => `${number}. ${question}\n${answer}`);
    return [[this.data.title, this.answers.name].filter(Boolean).join(" · "), ...rows].join("\n\n");
  }

  download() {
    const { title } = this.data;
    const name = this.answers.name ?? "";
    const rows = [["name", "course", "step", "view", "question", "answer"]];
    rows.push(...this.rows().map((row) => [name, title, ...row]));
    // A spreadsheet reads the file as UTF-8 when it begins with this mark.
    const text = `\ufeff${rows.map((row) => row.map(cell).join(",")).join("\r\n")}\r\n`;
    download(new Blob([text], { type: "text/csv" }), "answers.csv");
  }
}

function read(place) {
  try {
    const stored = JSON.parse(localStorage.getItem(place) ?? "{}");
    const entries = Object.entries(stored ?? {}).filter(([, value]) => typeof value === "string");
    return Object.fromEntries(entries);
  } catch {
    return {};
  }
}

// A link that loads the page anew, so that it shows what the teacher saw. A view without menu stays one.
function link(text, address, className) {
  const node = element("a", className, text);
  const url = new URL(address, location.href);
  for (const name of ["embed", "embed_options"]) {
    for (const value of new URLSearchParams(location.search).getAll(name)) url.searchParams.append(name, value);
  }
  node.href = url.href;
  return node;
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

// A field of a CSV file. A spreadsheet would take a text that begins with one of these signs for a formula.
function cell(value) {
  const text = String(value);
  return `"${(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
}
