import { readFileSync, statSync } from "node:fs";
import { bounceView, type PromisesShown, summaryView } from "../verify/bounces/bounce-view.ts";
import type { EventOutcome } from "../verify/bounces/bounces.ts";
import { BOUNCE_KINDS, BOUNCE_SOURCES, SUMMARY_DAYS_MAX } from "../verify/bounces/operations.ts";
import { BOUNCE_MAILBOX_CHECK } from "./mailbox-check.ts";
import {
  EVENTS_MAX,
  type EventsRead,
  isJsonText,
  readJsonEvents,
  readLogLines,
} from "../verify/bounces/read-events.ts";
import { argument, choice, command, group, limit, parsed } from "./command.ts";
import { CommandFailed, describeFileError, UsageError } from "./io.ts";
import { type CommandService, inService } from "./service.ts";
import { tableTime } from "./terminal-text.ts";

const ON = inService("bounces");
const FILE_BYTES_MAX = 64 * 1024 * 1024;
const PROBLEMS_SHOWN_MAX = 20;

const readText = (path: string): string => {
  try {
    if (statSync(path).size > FILE_BYTES_MAX) throw new CommandFailed(`${path} is larger than 64 MiB.`, "file");
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof CommandFailed) throw error;
    throw new CommandFailed(describeFileError(path, error), "file");
  }
};

/** The events of a file in parts: one JSON body, or lines of a log, of which there may be many. */
function* readParts(text: string, nowMs: number): Generator<EventsRead, void> {
  if (isJsonText(text)) {
    const read = readJsonEvents(jsonOf(text), nowMs);
    if (!read.ok)
      throw new CommandFailed(
        read.error === "too_many_events"
          ? `A JSON file may have at most ${EVENTS_MAX} events.`
          : "These are no events of Amazon SES, SendGrid, Mailgun or Postmark.",
        read.error,
      );
    yield read.value;
    return;
  }
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  for (let at = 0; at < lines.length; at += EVENTS_MAX) {
    const read = readLogLines(lines.slice(at, at + EVENTS_MAX).join("\n"), nowMs);
    if (read.ok) yield read.value;
  }
}

const jsonOf = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    throw new CommandFailed("The file begins like JSON, but is not valid JSON.", "json");
  }
};

const readDays = (text: string): number => {
  const days = Number(text);
  if (Number.isInteger(days) && days >= 1 && days <= SUMMARY_DAYS_MAX) return days;
  throw new UsageError(`"${text}" is not a number of days from 1 to ${SUMMARY_DAYS_MAX}.`, "days");
};

/** What became of the events of a file: only the first that could not be read are named. */
const addFile = async ({ service, caller }: CommandService, text: string) => {
  const counts = { stored: 0, known: 0, ignored: 0, unreadable: 0 };
  const unreadable: EventOutcome[] = [];
  let read = 0;
  for (const { events } of readParts(text, service.runtime.clock.nowMs())) {
    for (const one of await service.bounces.add(caller, events)) {
      counts[one.outcome] += 1;
      if (one.outcome === "unreadable" && unreadable.length < PROBLEMS_SHOWN_MAX)
        unreadable.push({ ...one, position: read + one.position });
    }
    read += events.length;
  }
  return { counts, unreadable };
};

/** `3 of 1,204 (0.25 %)`. */
const errorText = ({ deliverable_checks: checks, deliverable_bounced: bounced, error_rate: rate }: PromisesShown) =>
  rate === null
    ? "-"
    : `${bounced.toLocaleString("en")} of ${checks.toLocaleString("en")} (${(rate * 100).toFixed(2)} %)`;

/** Mail that came back. */
const BOUNCES = group(
  {
    description: "Report mail that came back, and compare it with what was promised.",
    example: "bounces add /var/log/mail.log --account acme",
  },
  {
    add: command({
      description: "Store the bounces in a log of Postfix, or in a JSON file of SES, SendGrid, Mailgun or Postmark.",
      example: "bounces add /var/log/mail.log --account acme",
      on: ON,
      args: { file: argument("<file>", "the file") },
      async run(context, { file }) {
        const { caller, perform, print, table } = context;
        const text = readText(file);
        const work = () => addFile(context, text);
        const added = await perform({ action: "bounces.add", subject: caller.mode }, work, () => false);
        print(added, () => {
          const { stored, known, ignored, unreadable } = added.counts;
          const sums = `${stored} stored, ${known} already known, ${ignored} are no bounces, ${unreadable} unreadable.`;
          const rows = added.unreadable.map(({ position, reason }) => [String(position), reason ?? ""]);
          return rows.length === 0 ? sums : `${sums}\n\n${table(["EVENT", "WHY IT IS UNREADABLE"], rows)}`;
        });
      },
    }),
    "imap-check": BOUNCE_MAILBOX_CHECK,
    list: command({
      description: "List the bounces of an account, the last reported first.",
      example: "bounces list --kind hard --account acme",
      on: ON,
      options: {
        kind: choice("<kind>", BOUNCE_KINDS, "only this kind"),
        source: choice("<source>", BOUNCE_SOURCES, "only what this source reported"),
        limit: limit(50, 1_000),
      },
      async run({ service, caller, print, table }, { kind, source, limit: shown }) {
        const found = await service.bounces.page(caller, { kind, source }, { before: null, limit: shown });
        const bounces = found.rows.map(bounceView);
        const rows = bounces.map((one) => [
          ...[one.email, one.kind, one.status ?? "", tableTime(one.bounced_at), one.source],
          ...[one.promised ?? "", one.provider ?? ""],
        ]);
        print({ bounces }, () =>
          table(["ADDRESS", "KIND", "STATUS", "BOUNCED", "SOURCE", "CHECKED BEFORE", "PROVIDER"], rows),
        );
      },
    }),
    summary: command({
      description: "Count bounced addresses by provider, and by what the last check had said about them.",
      example: "bounces summary --days 90 --account acme",
      on: ON,
      options: {
        days: parsed(
          "<days>",
          `how many days until now are counted, at most ${SUMMARY_DAYS_MAX} (default: 30)`,
          readDays,
        ),
      },
      async run({ service, caller, print, table }, { days = 30 }) {
        const summary = summaryView(await service.bounces.summary(caller, days), days);
        const rows = summary.providers.map(({ provider, hard, soft, ...promises }) => [
          provider ?? "(unknown)",
          ...[hard.deliverable, hard.risky, hard.undeliverable, hard.not_verified, soft].map(String),
          errorText(promises),
        ]);
        print(summary, () =>
          [
            table(["PROVIDER", "DELIVERABLE", "RISKY", "UNDELIVERABLE", "NOT CHECKED", "SOFT", "OWN ERRORS"], rows),
            `Of the addresses that checks called deliverable since ${summary.checks_from ?? "the beginning"}, bounced: ${errorText(summary.total)}.`,
          ].join("\n\n"),
        );
      },
    }),
  },
);

export const BOUNCE_COMMANDS = { bounces: BOUNCES };
