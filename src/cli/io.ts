import { errorCode, errorText } from "../foundation/base/errors.ts";
import { type Clock, systemClock } from "../foundation/base/clock.ts";
import { type Environment, processEnvironment } from "../service/config.ts";
import { safeLine, safeText } from "../foundation/base/visible-text.ts";
import { withPriority, writesToJournal } from "./journal.ts";

/** The streams, environment and signals that a command uses. Data goes to standard output, everything else to standard error. */
export interface Io {
  /** The variables that settings are read from. */
  readonly environment: Environment;
  /** The file of settings that is used where neither options nor variables name any; null for none. */
  readonly settingsFile: string | null;
  out(line: string): void;
  err(line: string): void;
  /** Replaces the status line by a text; null where standard error is not a terminal. */
  readonly status: ((text: string) => void) | null;
  /** Writes a text of our own to standard output with its colours; without it, colours are not shown. */
  readonly styled?: (text: string) => void;
  /** Writes bytes to standard output unchanged. */
  write(bytes: Uint8Array): Promise<void>;
  stdin(): AsyncIterable<Uint8Array>;
  stdinLines(): AsyncIterable<string>;
  readonly stdinIsTerminal: boolean;
  readonly stdoutKind: StdoutKind;
  /** Width of the terminal. Infinity where standard output is not a terminal: lines are not wrapped there. */
  readonly columns: number;
  /** Resolves with the name of the signal when the process is asked to stop. A second signal stops it at once. */
  untilSignal(): Promise<string>;
  /** Runs `task` at every SIGHUP, which then no longer ends the process. */
  onHangup(task: () => void): void;
}

/** Where standard output goes; `log` is the journal of systemd or the log of a container, which others can read. */
export type StdoutKind = "terminal" | "log" | "pipe";

/** A command failed, or found what it was told to fail on. The message is a sentence; the exit status is 1 by default. */
export class CommandFailed extends Error {
  constructor(
    message: string,
    readonly code = "failed",
    readonly status = 1,
  ) {
    super(message);
  }
}

/** The command line is wrong: exit status 2. */
export class UsageError extends Error {
  constructor(
    message: string,
    readonly code = "usage",
  ) {
    super(message);
  }
}

/** A longer line of standard input is cut. */
const LINE_CHARACTERS_MAX = 1_048_576;

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncIterable<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of stream) {
    rest += decoder.decode(chunk, { stream: true });
    const lines = rest.split("\n");
    rest = (lines.pop() ?? "").slice(0, LINE_CHARACTERS_MAX);
    for (const line of lines) yield line.replace(/\r$/, "");
  }
  rest += decoder.decode();
  if (rest !== "") yield rest.replace(/\r$/, "");
}

/** Ctrl-C arrives twice where a parent process forwards it; the second one must not stop the process at once. */
const FORWARDED_WITHIN_MS = 500;
/** The exit status that a shell reports for a process that a signal ended: 128 plus the number of the signal. */
const STOP_STATUS = { SIGTERM: 143, SIGINT: 130 } as const;
type StopSignal = keyof typeof STOP_STATUS;

/** Handles stop signals, independent of the process for tests: call `onSignal` for each; `first` resolves with the first. */
export const createStopSignals = (clock: Pick<Clock, "monotonicMs">, exit: (status: number) => void) => {
  const { promise: first, resolve } = Promise.withResolvers<StopSignal>();
  let firstMs: number | null = null;
  return {
    first,
    onSignal(signal: StopSignal): void {
      const nowMs = clock.monotonicMs();
      firstMs ??= nowMs;
      resolve(signal);
      if (nowMs - firstMs >= FORWARDED_WITHIN_MS) exit(STOP_STATUS[signal]);
    },
  };
};

/**
 * Signals that end a process by default, of which the service has no use. The platform ignores SIGPIPE and SIGXFSZ itself,
 * and needs SIGPWR for its garbage collector.
 */
const IGNORED_SIGNALS = [
  ...["SIGUSR1", "SIGUSR2", "SIGQUIT", "SIGALRM"],
  ...["SIGVTALRM", "SIGPROF", "SIGIO", "SIGXCPU"],
];

const untilSignal = (): Promise<string> => {
  const signals = createStopSignals(systemClock, process.exit);
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => signals.onSignal(signal));
  for (const signal of IGNORED_SIGNALS) process.on(signal, () => undefined);
  return signals.first;
};

/** systemd sets JOURNAL_STREAM for services that write to the journal; the first process of a container has pid 1. */
export const stdoutKindOf = (
  isTerminal: boolean | undefined,
  { pid, environment }: { readonly pid: number; readonly environment: Environment },
): StdoutKind => {
  if (isTerminal === true) return "terminal";
  return environment.JOURNAL_STREAM !== undefined || pid === 1 ? "log" : "pipe";
};

/** Returns to the start of the line and erases it. */
const CLEAR_LINE = "\r\u001b[2K";

const COLUMNS_DEFAULT = 80;

/** Where the Debian package keeps the settings of the service. */
const SETTINGS_FILE = "/etc/postwarden.env";

const isJournal = writesToJournal(processEnvironment());

/** The process's own streams, environment and signals. */
export const systemIo: Io = {
  environment: processEnvironment(),
  settingsFile: SETTINGS_FILE,
  out: (line) => void process.stdout.write(`${line}\n`),
  err: (line) => void process.stderr.write(`${isJournal ? withPriority(line) : line}\n`),
  status: process.stderr.isTTY ? (text) => void process.stderr.write(CLEAR_LINE + text) : null,
  styled: (text) => void process.stdout.write(text),
  write: async (bytes) => void (await Bun.write(Bun.stdout, bytes)),
  stdin: () => Bun.stdin.stream(),
  stdinLines: () => linesOf(Bun.stdin.stream()),
  stdinIsTerminal: process.stdin.isTTY === true,
  stdoutKind: stdoutKindOf(process.stdout.isTTY, { pid: process.pid, environment: processEnvironment() }),
  columns: process.stdout.isTTY ? process.stdout.columns || COLUMNS_DEFAULT : Number.POSITIVE_INFINITY,
  untilSignal,
  onHangup: (task) => void process.on("SIGHUP", task),
};

/** The same streams with control characters escaped: everything that commands print passes here. */
export const printSafely = (io: Io): Io => {
  const { status } = io;
  const decoder = new TextDecoder();
  const writeShown = (bytes: Uint8Array): Promise<void> =>
    io.write(Buffer.from(safeText(decoder.decode(bytes, { stream: true }).replaceAll("\r\n", "\n"))));
  return {
    ...io,
    out: (line) => io.out(safeText(line)),
    err: (line) => io.err(safeText(line)),
    write: io.stdoutKind === "terminal" ? writeShown : io.write,
    status: status === null ? null : (text) => status(safeLine(text)),
  };
};

/** Prints a JSON document with `--json`, else the text. */
export const print = (io: Io, asJson: boolean | undefined, data: unknown, text: () => string): void =>
  io.out(asJson ? JSON.stringify(data) : text());

/** Why a file cannot be used: `X: no such file`. */
export const describeFileError = (path: string, error: unknown): string => {
  switch (errorCode(error)) {
    case "ENOENT":
      return `${path}: no such file`;
    case "EACCES":
    case "EPERM":
      return `${path}: permission denied`;
    case "EROFS":
      return `${path}: read-only file system`;
    case "EISDIR":
      return `${path}: is a directory`;
    default:
      return `${path}: ${errorText(error)}`;
  }
};
