import { afterAll } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCli } from "../cli/cli.ts";
import type { StdoutKind } from "../cli/io.ts";

/** What one command said, and how it ended. */
export interface CommandResult {
  readonly status: number;
  readonly out: string;
  readonly err: string;
  /** Standard output as JSON; throws when it is none. */
  readonly json: Record<string, unknown>;
}

export interface CommandOptions {
  /** Settings without their prefix, beside the data directory. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Lines of standard input; without, it is a terminal. */
  readonly stdin?: readonly string[];
  /** Called with every line of standard output and standard error as it comes. */
  readonly onLine?: (line: string) => void;
  /** Ends `serve`; default: at once. */
  readonly untilSignal?: () => Promise<string>;
  /** Where standard output goes; default: to a terminal. */
  readonly stdoutKind?: StdoutKind;
  /** Settings and other variables under their whole names. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Is given what a SIGHUP does. */
  readonly onHangup?: (task: () => void) => void;
}

/** A data directory of its own, and the command line on it. The directory goes when the file's tests are done. */
export const createCommandLine = () => {
  const dataDir = join(mkdtempSync(join(tmpdir(), "postwarden-")), "data");
  afterAll(() => rmSync(join(dataDir, ".."), { recursive: true, force: true }));

  const run = async (args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> => {
    const { settings = {}, stdin, onLine = () => undefined, untilSignal = async () => "SIGTERM" } = options;
    const { onHangup = () => undefined, stdoutKind = "terminal", environment } = options;
    const lines = { out: [] as string[], err: [] as string[] };
    const hear = (to: string[]) => (line: string) => {
      to.push(line);
      onLine(line);
    };
    const given = Object.entries({ DATA_DIR: dataDir, ...settings }).map(([name, value]) => [
      `POSTWARDEN_${name}`,
      value,
    ]);
    const status = await runCli(args, {
      environment: environment ?? Object.fromEntries(given),
      out: hear(lines.out),
      err: hear(lines.err),
      status: null,
      stdinIsTerminal: stdin === undefined,
      stdoutKind,
      columns: 80,
      async write(bytes) {
        lines.out.push(Buffer.from(bytes).toString());
      },
      async *stdin() {
        for (const line of stdin ?? []) yield Buffer.from(`${line}\n`);
      },
      async *stdinLines() {
        yield* stdin ?? [];
      },
      untilSignal,
      onHangup,
    });
    const out = lines.out.join("\n");
    return {
      status,
      out,
      err: lines.err.join("\n"),
      get json() {
        return JSON.parse(out);
      },
    };
  };
  return { dataDir, run };
};
