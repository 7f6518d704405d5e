/** A line of the log at `warn` or `error`. */
export interface LoggedProblem {
  readonly atMs: number;
  readonly level: "warn" | "error";
  readonly message: string;
  /** The other fields as JSON text, as the log wrote them: without secrets. */
  readonly details: string;
}

const KEPT_MAX = 100;
const DETAILS_CHARACTERS_MAX = 1_000;
const LEVEL = /^\{"at":"([^"]+)","level":"(warn|error)","message":("(?:[^"\\]|\\.)*"),?(.*)$/s;

/** Keeps the last 100 warnings and errors of the log in memory. */
export class RecentProblems {
  readonly #kept: LoggedProblem[] = [];

  /** Notes a line that `createLog` has written: its secrets are blanked out already. */
  readonly note = (line: string): void => {
    const [, at = "", level, message = '""', rest = ""] = LEVEL.exec(line) ?? [];
    if (level !== "warn" && level !== "error") return;
    const details = rest.replace(/\}$/, "").slice(0, DETAILS_CHARACTERS_MAX);
    const text: unknown = JSON.parse(message);
    this.#kept.push({ atMs: Date.parse(at), level, message: String(text), details });
    if (this.#kept.length > KEPT_MAX) this.#kept.shift();
  };

  /** The newest first. */
  list(): readonly LoggedProblem[] {
    return this.#kept.toReversed();
  }
}
