import { type Command, Option } from "commander";
import { inspectRecord } from "../dmarc/record/inspect-record.ts";
import { inspectAddress } from "../mail/inspect-address.ts";
import { inspectReply } from "../verify/inspect-reply.ts";
import { FILE_TOO_LARGE, findFiles, NO_SUCH_FILE, readReportBytes } from "./dmarc-files.ts";
import { CommandFailed, type Io, UsageError } from "./io.ts";

async function* inputs(given: readonly string[], io: Io): AsyncIterable<string> {
  if (given.length > 0) yield* given;
  else if (io.stdinIsTerminal) throw new UsageError("Give something to inspect, or pipe lines in.");
  else yield* io.stdinLines();
}

/** `inspect address | reply | record | report`: what Postwarden reads in a text, one JSON object a line, without asking anybody. */
export const addInspectCommands = (
  program: Command,
  io: Io,
  stdin: () => ReadableStream<Uint8Array> = () => Bun.stdin.stream(),
): void => {
  const group = program
    .command("inspect")
    .description("what Postwarden reads in a text; nobody is asked, a JSON object a line");

  group
    .command("address")
    .description("is it an address, and how is it written in normal form")
    .argument("[text...]", "the texts; without any, lines of standard input")
    .option("--json", "print JSON (always so here)")
    .action(async (given: string[]) => {
      for await (const text of inputs(given, io)) io.out(JSON.stringify(inspectAddress(text)));
    });

  group
    .command("reply")
    .description("how an SMTP reply is read; write the line ends of a longer one as \\n")
    .argument("[reply...]", "the replies; without any, lines of standard input")
    .addOption(
      new Option("--stage <stage>", "which command it answers")
        .choices(["rcpt", "mail", "banner", "ehlo"])
        .default("rcpt"),
    )
    .option("--json", "print JSON (always so here)")
    .action(async (given: string[], { stage }: { stage: "rcpt" | "mail" | "banner" | "ehlo" }) => {
      for await (const reply of inputs(given, io)) io.out(JSON.stringify(inspectReply(reply, stage)));
    });

  group
    .command("record")
    .description("how the text of a DMARC record is read: its tags, and what is wrong with it")
    .argument("[record...]", "the texts; without any, lines of standard input")
    .option("--json", "print JSON (always so here)")
    .action(async (given: string[]) => {
      for await (const text of inputs(given, io)) io.out(JSON.stringify(inspectRecord(text)));
    });

  group
    .command("report")
    .description("what is in DMARC report files: mails, mailboxes, archives or XML; a directory is read file by file")
    .argument("[file...]", "the paths, - for a file on standard input; without any, paths in lines of standard input")
    .option("--json", "print JSON (always so here)")
    .action(async (given: string[]) => {
      let unreadable = 0;
      for await (const path of inputs(given, io)) unreadable += await printReports(path, io, stdin);
      if (unreadable > 0) throw new CommandFailed(`${unreadable} of the paths could not be read.`);
    });
};

/** How many files of a path cannot be read, which is said on standard error: the others still have their turn. */
const printReports = async (path: string, io: Io, stdin: () => ReadableStream<Uint8Array>): Promise<number> => {
  // Loaded here: what reads mails, archives and XML is large, and nothing else on the command line needs it.
  const { inspectBytes } = await import("../dmarc/report/inspect-report.ts");
  let unreadable = 0;
  for await (const file of findFiles([path])) {
    // Of a mailbox each mail is read by itself.
    for await (const { input, bytes, problem } of readReportBytes(file, stdin)) {
      if (problem === null || problem === FILE_TOO_LARGE) {
        for (const inspection of await inspectBytes(input, bytes)) io.out(JSON.stringify(inspection));
        continue;
      }
      unreadable += 1;
      io.err(problem === NO_SUCH_FILE ? `${input} is not there.` : `${input}: ${problem}`);
    }
  }
  return unreadable;
};
