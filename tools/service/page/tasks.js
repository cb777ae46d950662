"use strict";

const EMPTY = {
  id: null, name: "", state: "", step: "", error: "", report: "", asks: false, isActive: false,
  isRunning: false, isOver: false, options: "", done: null, total: null, hasArtifact: false, hasExplanation: false, artifact: "#", explanation: "#",
};

const UNREACHABLE = "The server cannot be reached.";

// Numbers requests, so that an answer which comes after the answer to a later request is left out.
class Turns {
  asked = 0;
  shown = 0;

  next() { return ++this.asked; }

  isOutdated(turn) {
    if (turn < this.shown) return true;
    this.shown = turn;
    return false;
  }
}
const [refreshes, looks] = [new Turns(), new Turns()];

function microseconds(seconds) {
  return seconds === null ? "–" : (seconds * 1e6).toPrecision(4);
}

// Less is within what measurements differ by.
const GAINED = 1.005;
const NAMED = 2;

// The model's ops in a kernel, of the first places where it is.
function named(kernel) {
  const more = kernel.ops.length - NAMED;
  return kernel.ops.slice(0, NAMED).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

function shownKernel(kernel, number) {
  const best = kernel.keeps_library ? kernel.library : kernel.searched;
  const gain = best && kernel.default ? kernel.default / best : null;
  const isFaster = gain !== null && gain >= GAINED;
  const schedule = kernel.schedule ?? (kernel.keeps_library ? "" : "the default schedule");
  return {
    number,
    what: named(kernel) || kernel.what,
    ops: kernel.ops.join("\n"),
    schedule: [kernel.ops.length ? kernel.what : "", schedule].filter(Boolean).join(" · "),
    library: microseconds(kernel.library),
    default: microseconds(kernel.default),
    searched: microseconds(kernel.searched),
    libraryClass: kernel.keeps_library && isFaster ? "best" : "",
    searchedClass: !kernel.keeps_library && isFaster ? "best" : "",
    gain: gain === null ? "–" : isFaster ? `${gain.toFixed(2)}×` : "none",
  };
}

function shownOptions(given) {
  const text = (name, value) => (value === true ? name
    : `${name} ${name === "space" ? "of its own" : [value].flat().join(", ")}`);
  return Object.entries(given).map(([name, value]) => text(name.replaceAll("_", " "), value)).join(" · ");
}

function timeLeft(ends) {
  const left = Math.round(ends - Date.now() / 1000);
  if (left <= 0) return "";
  return left < 90 ? `, at most ${left} s left` : `, at most ${Math.round(left / 60)} min left`;
}

function shownTask(task, chosen) {
  const isActive = task.state === "queued" || task.state === "running";
  return {
    id: task.id,
    name: task.options.name,
    state: task.state,
    step: task.state === "queued" ? "waits for those before it"
      : task.step + (task.ends ? timeLeft(task.ends) : ""),
    options: shownOptions(task.given),
    done: task.total ? task.done : null,
    total: task.total || null,
    error: task.error ?? "",
    report: task.report,
    asks: task.asks,
    isActive,
    isRunning: task.state === "running",
    isOver: !isActive,
    hasArtifact: task.has_artifact,
    hasExplanation: task.has_explanation,
    artifact: `tasks/${task.id}/artifact`,
    explanation: `tasks/${task.id}/explain`,
    when: new Date(task.created * 1000).toLocaleString(),
    isChosen: task.id === chosen ? "true" : "false",
    chosen: task.id === chosen ? "chosen" : "",
  };
}

document.addEventListener("alpine:init", () => {
  Alpine.data("tasks", () => ({
    isIn: false, isOut: false, isSending: false, token: "", problem: "", summary: "",
    onMiss: "tune", target: "", sizes: "", seconds: 600, interactive: false, line: "",
    list: [], chosen: EMPTY, kernels: [], text: "", id: null, stream: null,
    get isEmpty() { return this.list.length === 0; },
    get isChosen() { return this.chosen.id !== null; },
    get hasKernels() { return this.kernels.length > 0; },
    get hasLines() { return this.text !== ""; },

    async init() {
      await this.refresh();
      setInterval(() => {
        if (this.isIn) this.refresh();
        if (this.isIn && this.chosen.isActive) this.look();
      }, 2000);
    },

    // What the server answers, null where it refuses; the problem is then shown, until an order succeeds.
    async ask(method, path, options = {}) {
      try {
        const answer = await fetch(path, { method, ...options });
        if (answer.status === 401) {
          [this.isIn, this.isOut] = [false, true];
          this.close();
          return null;
        }
        if (!answer.ok) {
          const detail = (await answer.json()).detail;
          this.problem = typeof detail === "string" ? detail : detail.map((each) => each.msg).join("; ");
          return null;
        }
        if (method !== "GET" || this.problem === UNREACHABLE) this.problem = "";
        return answer.status === 204 ? true : await answer.json();
      } catch {
        this.problem = UNREACHABLE;
        return null;
      }
    },

    async logIn() {
      const headers = { Authorization: `Bearer ${this.token}` };
      const isIn = await this.ask("POST", "session", { headers });
      if (isIn === null) this.problem ||= "The server does not know this token.";
      this.token = "";
      if (isIn) await this.refresh();
    },

    async logOut() {
      await this.ask("DELETE", "session");
      [this.list, this.summary] = [[], ""];
      this.select(null);
      await this.refresh();
    },

    async refresh() {
      const turn = refreshes.next();
      const tasks = await this.ask("GET", "tasks");
      if (tasks === null || refreshes.isOutdated(turn)) return;
      [this.isIn, this.isOut] = [true, false];
      this.list = tasks.map((task) => shownTask(task, this.id));
      const waiting = tasks.filter((task) => task.state === "queued").length;
      this.summary = `${tasks.length} ${tasks.length === 1 ? "task" : "tasks"}, ${waiting} waiting`;
    },

    async submit() {
      const file = document.getElementById("model").files[0];
      const options = new URLSearchParams({
        name: file.name, on_miss: this.onMiss, seconds: this.seconds, interactive: this.interactive,
      });
      if (this.target.trim()) options.set("target", this.target.trim());
      for (const size of this.sizes.split(/[\s,;]+/).filter(Boolean)) options.append("dims", size);
      this.isSending = true;
      const headers = { "Content-Type": "application/octet-stream" };
      const task = await this.ask("POST", `tasks?${options}`, { body: file, headers });
      this.isSending = false;
      if (task === null) return;
      document.getElementById("submit").open = false;
      await this.choose(task.id);
    },

    async choose(id) {
      this.select(id);
      this.stream = new EventSource(`tasks/${id}/events`);
      this.stream.addEventListener("line", (event) => {
        this.text += `${JSON.parse(event.data).data.text}\n`;
      });
      for (const kind of ["step", "asks", "kernels", "report"]) {
        this.stream.addEventListener(kind, () => this.look());
      }
      // After the last event the stream is over; where it breaks before, the browser goes on.
      this.stream.addEventListener("state", (event) => {
        const state = JSON.parse(event.data).data.state;
        if (state !== "queued" && state !== "running") this.close();
        this.look();
        this.refresh();
      });
      await this.look();
      await this.refresh();
    },

    select(id) {
      this.close();
      [this.id, this.chosen, this.kernels, this.text] = [id, EMPTY, [], ""];
    },

    close() {
      this.stream?.close();
      this.stream = null;
    },

    async look() {
      const [id, turn] = [this.id, looks.next()];
      const task = id === null ? null : await this.ask("GET", `tasks/${id}`);
      if (task === null || id !== this.id || looks.isOutdated(turn)) return;
      this.chosen = shownTask(task, id);
      this.kernels = task.kernels.map(shownKernel);
    },

    async cancel() {
      await this.ask("POST", `tasks/${this.id}/cancel`);
      await this.look();
      await this.refresh();
    },

    async remove() {
      const id = this.id;
      if (!window.confirm(`Delete ${this.chosen.name} and what was made of it?`)) return;
      if (await this.ask("DELETE", `tasks/${id}`)) this.select(null);
      await this.refresh();
    },

    async sendOrder() {
      const headers = { "Content-Type": "application/json" };
      const body = JSON.stringify({ line: this.line.trim() || "go" });
      await this.ask("POST", `tasks/${this.id}/orders`, { body, headers });
      this.line = "";
    },
  }));
});
