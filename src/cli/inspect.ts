import { type Command, Option } from "commander";
import { inspectAddress } from "../mail/inspect-address.ts";
import { inspectReply } from "../verify/inspect-reply.ts";
import { type Io, UsageError } from "./io.ts";

async function* inputs(given: readonly string[], io: Io): AsyncIterable<string> {
  if (given.length > 0) yield* given;
  else if (io.stdinIsTerminal) throw new UsageError("Give something to inspect, or pipe lines in.");
  else yield* io.stdinLines();
}

/** `inspect address | reply`: what Postwarden reads in a text, one JSON object a line, without asking anybody. */
export const addInspectCommands = (program: Command, io: Io): void => {
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
};
