import { type Clock, isoTime } from "./clock.ts";

export const LOG_LEVELS = ["debug", "info", "warn", "error", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export type LogFields = Readonly<Record<string, unknown>>;

export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** Whether lines of this level are written at all; check it before an expensive line is built. */
  enabled(level: LogLevel): boolean;
}

/** The name before a password has no colon: with one, a line of colons would be tried at every one of them. */
const SECRETS = /pw_(live|test)_[0-9A-Za-z]{4,}|whsec_[0-9A-Za-z+/=]{4,}|(?<=:\/\/)[^/@\s:]*:[^/@\s]+(?=@)/g;
const LINE_CHARACTERS_MAX = 8_192;

/** Blanks out API keys, webhook secrets and passwords in URLs. */
export const redact = (text: string): string => text.replace(SECRETS, (_, mode) => (mode ? `pw_${mode}_…` : "…"));

const printable = (value: unknown): unknown => {
  if (value instanceof Error) return { name: value.name, message: value.message, stack: value.stack };
  if (typeof value === "bigint") return value.toString();
  return value;
};

/** A field named as one of the line's own is written with an underscore behind it. `time` is what readers take for `at`. */
const OWN_NAMES = /^(?:at|time|level|message)$/;

const lineOf = (own: LogFields, fields: LogFields = {}): LogFields => ({
  ...own,
  ...Object.fromEntries(Object.entries(fields).map(([name, value]) => [name.replace(OWN_NAMES, "$&_"), value])),
});

/**
 * A log of one JSON object a line: `at`, `level`, `message`, then the fields, none of which replaces these. Secrets are blanked out and a line is cut
 * at 8,192 characters, whatever it was given. A function as `level` is called for every line, so that the level can change.
 */
export const createLog = (level: LogLevel | (() => LogLevel), clock: Clock, writeLine: (line: string) => void): Log => {
  const current = typeof level === "function" ? level : () => level;
  const enabled = (of: LogLevel) => LOG_LEVELS.indexOf(of) >= LOG_LEVELS.indexOf(current());
  const at = (of: LogLevel) => (message: string, fields?: LogFields) => {
    if (!enabled(of)) return;
    const line = JSON.stringify(lineOf({ at: isoTime(clock.nowMs()), level: of, message }, fields), (_, v) =>
      printable(v),
    );
    writeLine(redact(line).slice(0, LINE_CHARACTERS_MAX));
  };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error"), enabled };
};

/** A log that hands its lines to another one, such as that of another thread, as plain data. That one knows the level. */
export const logTo = (hand: (level: keyof Omit<Log, "enabled">, message: string, fields: LogFields) => void): Log => {
  const at = (level: keyof Omit<Log, "enabled">) => (message: string, fields?: LogFields) =>
    hand(level, message, JSON.parse(JSON.stringify(fields ?? {}, (_, value) => printable(value))));
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error"), enabled: () => true };
};

/** A line of the log at `warn` or `error`. */
export interface LoggedProblem {
  readonly atMs: number;
  readonly level: "warn" | "error";
  readonly message: string;
  /** The other fields with their values as texts, as the log wrote them: without secrets. Those that are null are left out. */
  readonly fields: ReadonlyArray<readonly [name: string, value: string]>;
}

const KEPT_MAX = 100;
const FIELDS_MAX = 20;
const VALUE_CHARACTERS_MAX = 500;
const LEVEL = /^\{"at":"([^"]+)","level":"(warn|error)","message":("(?:[^"\\]|\\.)*"),?(.*)$/s;

/** An error as its message: its stack is in the log. */
const textOf = (value: unknown): string => {
  if (typeof value === "string") return value;
  const isError = typeof value === "object" && value !== null && "stack" in value && "message" in value;
  return isError && typeof value.message === "string" ? value.message : JSON.stringify(value);
};

const cutValue = (value: unknown): string => {
  const text = textOf(value);
  return text.length > VALUE_CHARACTERS_MAX ? `${text.slice(0, VALUE_CHARACTERS_MAX)}…` : text;
};

/** The fields at the end of a line of the log; one of their whole text where the line was cut. */
const fieldsOf = (rest: string): LoggedProblem["fields"] => {
  try {
    const fields: unknown = JSON.parse(`{${rest}`);
    return Object.entries(fields ?? {})
      .filter(([, value]) => value !== null)
      .slice(0, FIELDS_MAX)
      .map(([name, value]) => [name, cutValue(value)] as const);
  } catch {
    return [["fields", cutValue(rest)]];
  }
};

/** Keeps the last 100 warnings and errors of the log in memory. */
export class RecentProblems {
  readonly #kept: LoggedProblem[] = [];

  /** Notes a line that `createLog` has written: its secrets are blanked out already. */
  readonly note = (line: string) => {
    const [, at = "", level, message = '""', rest = ""] = LEVEL.exec(line) ?? [];
    if (level !== "warn" && level !== "error") return;
    const text: unknown = JSON.parse(message);
    this.#kept.push({ atMs: Date.parse(at), level, message: String(text), fields: fieldsOf(rest) });
    if (this.#kept.length > KEPT_MAX) this.#kept.shift();
  };

  /** The newest first. */
  list(): readonly LoggedProblem[] {
    return this.#kept.toReversed();
  }
}

const LOGGED_EVERY_MS = 10_000;

/**
 * Logs an error that repeats as often as others make it repeat, such as a full disk: once in ten seconds, with the number
 * of those in between, so that the log does not grow with their rate.
 */
export class RepeatedError {
  #lastMs: number = Number.NEGATIVE_INFINITY;
  #unlogged = 0;

  constructor(
    private readonly message: string,
    private readonly deps: { readonly log: Log; readonly clock: Pick<Clock, "monotonicMs"> },
  ) {}

  log(fields: LogFields): void {
    const nowMs = this.deps.clock.monotonicMs();
    if (nowMs - this.#lastMs < LOGGED_EVERY_MS) {
      this.#unlogged++;
      return;
    }
    const others = this.#unlogged === 0 ? {} : { others: this.#unlogged };
    this.deps.log.error(this.message, { ...fields, ...others });
    this.#lastMs = nowMs;
    this.#unlogged = 0;
  }
}

/** Logs errors that no code handles. The thread goes on: each concerns one piece of work, and what is stored is consistent. */
export const logUnhandled = (log: Log, clock: Pick<Clock, "monotonicMs">): void => {
  const unhandled = new RepeatedError("internal error that nothing handled", { log, clock });
  for (const event of ["uncaughtException", "unhandledRejection"] as const)
    process.on(event, (error: unknown) => unhandled.log({ event, error }));
};
