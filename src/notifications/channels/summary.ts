import { z } from "zod";
import type { EventDoc } from "../../foundation/http/openapi.ts";
import {
  integerField,
  listField,
  namedResponse,
  nullableTime,
  textField,
  timeField,
} from "../../foundation/http/schema-fields.ts";
import { eventMessage } from "./message.ts";

/** What a channel gets in place of the events of a maintenance window. */
export const SUMMARY_TYPE = "notifications.summary";

/** Lines of a summary; the others are counted. */
const LINES_MAX = 100;

const lineSchema = z.object({
  at: timeField("When it happened."),
  text: textField("What happened."),
  ended_at: nullableTime("When it ended, within the same window; null otherwise."),
});

const summarySchema = namedResponse("NotificationsSummary", {
  since: timeField("When the first event waited."),
  until: timeField("When the window was over."),
  count: integerField("Events that the message is about."),
  lines: listField(lineSchema, "The first 100. What began and ended within the window is one."),
  more: integerField("Lines that are left out."),
});

/** The event, as the OpenAPI document describes it. */
export const SUMMARY_EVENT: EventDoc = {
  type: SUMMARY_TYPE,
  tag: "Webhooks",
  summary: "What happened during a maintenance window; sent to channels only",
  title: (text) => `${text("count")} events during a maintenance window`,
  data: summarySchema,
  example: {
    since: "2026-01-01T22:14:00.000Z",
    until: "2026-01-02T06:00:00.000Z",
    count: 3,
    lines: [
      {
        at: "2026-01-01T22:14:00.000Z",
        text: "198.51.100.7 is listed on SpamCop SCBL",
        ended_at: "2026-01-02T03:20:00.000Z",
      },
      { at: "2026-01-02T04:00:00.000Z", text: "example.com: the DMARC record changed", ended_at: null },
    ],
    more: 0,
  },
};

/** An event that waits, given as the JSON text of its body. */
export interface HeldEvent<Row> {
  readonly row: Row;
  readonly body: string;
}

interface Line {
  readonly at: string;
  readonly text: string;
  ended_at: string | null;
}

/**
 * The data of a summary, and the rows that it is about; null when all are sent themselves: fewer than two in a channel with messages. A channel with
 * incidents gets the last event of each that is open or was open before, so that it shows what is true.
 */
export const summaryOf = <Row>(
  held: ReadonlyArray<HeldEvent<Row>>,
  { docs, hasIncidents }: { docs: readonly EventDoc[]; hasIncidents: boolean },
): { rows: readonly Row[]; data: { count: number; lines: readonly Line[]; more: number } } | null => {
  const events = held.map(({ row, body }) => ({ row, ...eventMessage(body, { baseUrl: null, docs }) }));
  const ofIncident = Map.groupBy(events, ({ incident }) => incident?.key ?? null);
  const isSentItself = (event: (typeof events)[number]) => {
    const all = event.incident === null ? [] : (ofIncident.get(event.incident.key) ?? []);
    const [first, last] = [all[0]?.incident, all.at(-1)];
    const hasPassed = first?.ends === false && last?.incident?.ends === true;
    return hasIncidents && event === last && !hasPassed;
  };
  const summarized = events.filter((event) => !isSentItself(event));
  if (summarized.length < 2) return null;
  const lines: Line[] = [];
  const open = new Map<string, Line>();
  for (const { title, at, incident } of summarized) {
    const began = incident === null ? undefined : open.get(incident.key);
    if (incident?.ends === true && began !== undefined) {
      began.ended_at = at;
      open.delete(incident.key);
      continue;
    }
    const line: Line = { at, text: title, ended_at: null };
    lines.push(line);
    if (incident !== null && !incident.ends) open.set(incident.key, line);
  }
  const shown = lines.slice(0, LINES_MAX);
  return {
    rows: summarized.map(({ row }) => row),
    data: { count: summarized.length, lines: shown, more: lines.length - shown.length },
  };
};
