import { type Clock, systemClock } from "../base/clock.ts";
import { type Environment, processEnvironment } from "../config.ts";
import { safeLine, safeText } from "./terminal-text.ts";

/** What a command has of the world. Data goes to standard output, everything else to standard error. */
export interface Io {
  /** Where the settings stand. */
  readonly environment: Environment;
  out(line: string): void;
  err(line: string): void;
  /** Shows a text in the place of the one before it; null where standard error is no terminal. */
  readonly status: ((text: string) => void) | null;
  /** Bytes to standard output, as they are. */
  write(bytes: Uint8Array): Promise<void>;
  stdin(): AsyncIterable<Uint8Array>;
  stdinLines(): AsyncIterable<string>;
  readonly stdinIsTerminal: boolean;
  readonly stdoutKind: StdoutKind;
  /** Width of the terminal; 80 where there is none. */
  readonly columns: number;
  /** Resolves with the name of the signal when the process is asked to end. A second one, a while later, ends it at once. */
  untilSignal(): Promise<string>;
  /** Runs `task` at every SIGHUP, which from then on does not end the process. */
  onHangup(task: () => void): void;
}

/** Where standard output goes: `log` is kept and read by others, as the journal of systemd or the log of a container. */
export type StdoutKind = "terminal" | "log" | "pipe";

/** A command could not do what it was asked, or found what it was to fail on: one sentence for people, exit status 1 unless told. */
export class CommandFailed extends Error {
  constructor(
    message: string,
    readonly code = "failed",
    readonly status = 1,
  ) {
    super(message);
  }
}

/** The command line itself is wrong: exit status 2. */
export class UsageError extends Error {
  constructor(
    message: string,
    readonly code = "usage",
  ) {
    super(message);
  }
}

/** A line of standard input longer than this is cut: nothing Postwarden reads comes near it. */
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

/** A terminal's Ctrl-C reaches us twice where a parent forwards it: the second must not cut the polite end short. */
const FORWARDED_WITHIN_MS = 500;
/** What a shell reports for a process that a signal ended: 128 and the signal's number. */
const STOP_STATUS = { SIGTERM: 143, SIGINT: 130 } as const;
type StopSignal = keyof typeof STOP_STATUS;

/** Built apart from the process, so that signals can be tried out: `onSignal` is called for each, `first` is the answer. */
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

const untilSignal = (): Promise<string> => {
  const signals = createStopSignals(systemClock, process.exit);
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => signals.onSignal(signal));
  // What is sent to reopen logs or to start an inspector must not end what is under way.
  for (const signal of ["SIGUSR1", "SIGUSR2"] as const) process.on(signal, () => undefined);
  return signals.first;
};

/** systemd sets JOURNAL_STREAM for services that write to the journal; a container's first process has the number 1. */
export const stdoutKindOf = (
  isTerminal: boolean | undefined,
  { pid, environment }: { readonly pid: number; readonly environment: Environment },
): StdoutKind => {
  if (isTerminal === true) return "terminal";
  return environment.JOURNAL_STREAM !== undefined || pid === 1 ? "log" : "pipe";
};

/** Back to the start of the line, and away with what stands there. */
const CLEAR_LINE = "\r\u001b[2K";

const COLUMNS_DEFAULT = 80;

/** The process's own streams, environment and signals. */
export const systemIo: Io = {
  environment: processEnvironment(),
  out: (line) => void process.stdout.write(`${line}\n`),
  err: (line) => void process.stderr.write(`${line}\n`),
  status: process.stderr.isTTY ? (text) => void process.stderr.write(CLEAR_LINE + text) : null,
  write: async (bytes) => void (await Bun.write(Bun.stdout, bytes)),
  stdin: () => Bun.stdin.stream(),
  stdinLines: () => linesOf(Bun.stdin.stream()),
  stdinIsTerminal: process.stdin.isTTY === true,
  stdoutKind: stdoutKindOf(process.stdout.isTTY, { pid: process.pid, environment: processEnvironment() }),
  columns: process.stdout.columns || COLUMNS_DEFAULT,
  untilSignal,
  onHangup: (task) => void process.on("SIGHUP", task),
};

/** The same streams, on which nothing reaches a terminal that it would act on: all that commands print passes here. */
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

/** One JSON document, or the text for people. */
export const print = (io: Io, asJson: boolean | undefined, data: unknown, text: () => string): void =>
  io.out(asJson ? JSON.stringify(data) : text());
