// Questions to the model's thread (worker.js), and its answers.

export class Thread {
  // `address` of the worker's script. Throws where the browser has no workers or does not start one from a page.
  constructor(address) {
    this.worker = new Worker(address);
    this.asked = new Map();
    this.count = 0;
    this.worker.onmessage = ({ data }) => this.hear(data);
    this.worker.onerror = (event) => {
      event.preventDefault();
      for (const { reject } of this.asked.values()) reject(new Error(event.message || tr("the model's thread has stopped")));
      this.asked.clear();
    };
  }

  hear({ id, progress, answer, error, superseded }) {
    const { resolve, reject, onProgress } = this.asked.get(id) ?? {};
    if (!resolve) return;
    if (progress !== undefined) {
      onProgress?.(progress);
      return;
    }
    this.asked.delete(id);
    if (error) reject(new Error(error));
    else resolve(superseded ? null : answer);
  }

  // The answer, or null where a newer question of the same name came first. `moved`: buffers that go to the thread.
  ask(ask, question, { onProgress, moved = [] } = {}) {
    this.count += 1;
    const id = this.count;
    return new Promise((resolve, reject) => {
      this.asked.set(id, { resolve, reject, onProgress });
      this.worker.postMessage({ id, ask, ...question }, moved);
    });
  }
}
