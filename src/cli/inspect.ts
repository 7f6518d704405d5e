import { inspectRecord } from "../dmarc/records/record/record.ts";
import { inspectAddress } from "../foundation/mail/address.ts";
import { inspectReply } from "../verify/replies.ts";
import { argument, choice, command, type CommandTrees, group, type Operand, withDefault } from "./command.ts";
import { FILE_TOO_LARGE, findFiles, NO_SUCH_FILE, readReportBytes } from "./dmarc-files.ts";
import { CommandFailed, type Io, UsageError } from "./io.ts";

const STAGES = ["rcpt", "mail", "banner", "ehlo"] as const;

async function* inputs(given: readonly string[], io: Io): AsyncIterable<string> {
  if (given.length > 0) yield* given;
  else if (io.stdinIsTerminal) throw new UsageError("Give a text to inspect, or pipe lines in.");
  else yield* io.stdinLines();
}

type Stdin = () => ReadableStream<Uint8Array>;

const JSON_ALWAYS = "print JSON (always)";

/** A command that prints how each of some texts is read. */
const inspecting = (
  help: { readonly description: string; readonly example: string },
  given: Operand<readonly string[]>,
  inspect: (text: string) => unknown,
) =>
  command({
    ...help,
    json: JSON_ALWAYS,
    args: { given },
    async run({ io }, input) {
      for await (const text of inputs(input.given, io)) io.out(JSON.stringify(inspect(text)));
    },
  });

const REPLY_EXAMPLE = 'inspect reply "550 5.1.1 User unknown"';

/** How Postwarden reads a text. */
export const inspectCommands = (stdin: Stdin = () => Bun.stdin.stream()): CommandTrees => ({
  inspect: group(
    {
      description: "Show how Postwarden reads a text, one JSON object per line, without the network.",
      example: REPLY_EXAMPLE,
    },
    {
      address: inspecting(
        {
          description: "Parse an email address and show its normal form.",
          example: 'inspect address "Ada@Example.com"',
        },
        argument("[text...]", "addresses (default: lines of standard input)"),
        inspectAddress,
      ),
      reply: command({
        description: "Classify an SMTP reply and name the rule that matches.",
        example: REPLY_EXAMPLE,
        json: JSON_ALWAYS,
        args: {
          given: argument("[reply...]", "replies, line breaks written as \\n (default: lines of standard input)"),
        },
        options: { stage: withDefault(choice("<stage>", STAGES, "command that the server replied to"), "rcpt") },
        async run({ io }, { given, stage }) {
          for await (const reply of inputs(given, io)) io.out(JSON.stringify(inspectReply(reply, stage)));
        },
      }),
      record: inspecting(
        {
          description: "Parse the text of a DMARC record and list its tags and problems.",
          example: 'inspect record "v=DMARC1; p=none; rua=mailto:dmarc@example.com"',
        },
        argument("[record...]", "records (default: lines of standard input)"),
        inspectRecord,
      ),
      report: command({
        description: "Read DMARC reports from files and print them; stores nothing.",
        example: "inspect report report.xml.gz",
        json: JSON_ALWAYS,
        args: {
          given: argument(
            "[file...]",
            "mails, mailboxes, archives, XML, directories; - is standard input (default: paths on standard input)",
          ),
        },
        async run({ io }, { given }) {
          let unreadable = 0;
          for await (const path of inputs(given, io)) unreadable += await printReports(path, io, stdin);
          if (unreadable > 0) throw new CommandFailed(`${unreadable} of the paths could not be read.`);
        },
      }),
    },
  ),
});

/** Prints the reports at a path. Returns how many files cannot be read; each is named on standard error. */
const printReports = async (path: string, io: Io, stdin: Stdin): Promise<number> => {
  // Loaded when needed: the readers of mails, archives and XML are large.
  const { inspectBytes } = await import("../dmarc/reports/report/read-file.ts");
  let unreadable = 0;
  for await (const file of findFiles([path])) {
    for await (const { input, bytes, problem } of readReportBytes(file, stdin)) {
      if (problem === null || problem === FILE_TOO_LARGE) {
        for (const inspection of await inspectBytes(input, bytes)) io.out(JSON.stringify(inspection));
        continue;
      }
      unreadable += 1;
      io.err(problem === NO_SUCH_FILE ? `${input}: no such file` : `${input}: ${problem}`);
    }
  }
  return unreadable;
};
