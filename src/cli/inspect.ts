import { type Command, Option } from "commander";
import { inspectRecord } from "../dmarc/records/record/record.ts";
import { inspectAddress } from "../foundation/mail/address.ts";
import { inspectReply } from "../verify/replies.ts";
import { FILE_TOO_LARGE, findFiles, NO_SUCH_FILE, readReportBytes } from "./dmarc-files.ts";
import { addCommand, addGroup } from "./command.ts";
import { CommandFailed, type Io, UsageError } from "./io.ts";

const STAGES = ["rcpt", "mail", "banner", "ehlo"] as const;

async function* inputs(given: readonly string[], io: Io): AsyncIterable<string> {
  if (given.length > 0) yield* given;
  else if (io.stdinIsTerminal) throw new UsageError("Give a text to inspect, or pipe lines in.");
  else yield* io.stdinLines();
}

type Stdin = () => ReadableStream<Uint8Array>;

/** `inspect address | reply | record | report`: how Postwarden reads a text, one JSON object per line, without the network. */
export const addInspectCommands = (program: Command, io: Io, stdin: Stdin = () => Bun.stdin.stream()): void => {
  const group = addGroup(program, "inspect", {
    description: "Show how Postwarden reads a text, one JSON object per line, without the network.",
    example: 'inspect reply "550 5.1.1 User unknown"',
  });
  const json = "print JSON (always)";

  addCommand(group, "address", {
    description: "Parse an email address and show its normal form.",
    example: 'inspect address "Ada@Example.com"',
    json,
  })
    .argument("[text...]", "addresses (default: lines of standard input)")
    .action(async (given: string[]) => {
      for await (const text of inputs(given, io)) io.out(JSON.stringify(inspectAddress(text)));
    });

  addCommand(group, "reply", {
    description: "Classify an SMTP reply and name the rule that matches.",
    example: 'inspect reply "550 5.1.1 User unknown"',
    json,
  })
    .argument("[reply...]", "replies, line breaks written as \\n (default: lines of standard input)")
    .addOption(new Option("--stage <stage>", "command that the server replied to").choices(STAGES).default("rcpt"))
    .action(async (given: string[], { stage }: { stage: (typeof STAGES)[number] }) => {
      for await (const reply of inputs(given, io)) io.out(JSON.stringify(inspectReply(reply, stage)));
    });

  addCommand(group, "record", {
    description: "Parse the text of a DMARC record and list its tags and problems.",
    example: 'inspect record "v=DMARC1; p=none; rua=mailto:dmarc@example.com"',
    json,
  })
    .argument("[record...]", "records (default: lines of standard input)")
    .action(async (given: string[]) => {
      for await (const text of inputs(given, io)) io.out(JSON.stringify(inspectRecord(text)));
    });

  addCommand(group, "report", {
    description: "Read DMARC reports from files and print them; stores nothing.",
    example: "inspect report report.xml.gz",
    json,
  })
    .argument(
      "[file...]",
      "mails, mailboxes, archives, XML, directories; - is standard input (default: paths on standard input)",
    )
    .action(async (given: string[]) => {
      let unreadable = 0;
      for await (const path of inputs(given, io)) unreadable += await printReports(path, io, stdin);
      if (unreadable > 0) throw new CommandFailed(`${unreadable} of the paths could not be read.`);
    });
};

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
