import { findStatus, ignored, readBounce, type EventReading, unreadable } from "../bounce.ts";

const LINE_CHARACTERS_MAX = 4_000;
/** Time, host, program and the id of the queue: `Nov 28 07:12:01 mx postfix/smtp[123]: 4F1A22C0: `. */
const PREFIX =
  /^(?<time>\d{4}-\d\d-\d\dT[\d:.]{8,18}(?:Z|[+-]\d\d:?\d\d)|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) (?<host>\S{1,255}) (?<program>[\w./-]{1,64})(?:\[\d{1,10}\])?: (?<queue>[0-9A-Za-z]{5,20}): /;
const DELIVERY = "to=<";
const DSN = /, dsn=([245]\.\d{1,3}\.\d{1,3}), status=([a-z-]{1,20})(?: \((.*)\))?$/;
const DAY_MS = 86_400_000;

/** The time of a line. A syslog time has neither year nor zone (RFC 3164): it is read as UTC, in the latest year that is over. */
const timeOf = (text: string, nowMs: number): number => {
  if (/^\d/.test(text)) return Date.parse(text);
  const year = new Date(nowMs).getUTCFullYear();
  const inYear = (one: number) => Date.parse(`${text.slice(0, 6)} ${one}${text.slice(6)} UTC`);
  return inYear(year) > nowMs + DAY_MS ? inYear(year - 1) : inYear(year);
};

/** A line of another program in the same log. */
const OTHER_PROGRAM =
  /^(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT[\d:.+Z-]{8,24}) [^ ]{1,255} [\w./-]{1,64}(?:\[\d{1,10}\])?: /;

/**
 * One line of the log of Postfix. Only what Postfix itself wrote in front of the server's reply counts: the reply is text of a
 * stranger, and may look like a line of a log.
 */
export const readPostfixLine = (line: string, nowMs: number): EventReading => {
  if (line.length > LINE_CHARACTERS_MAX) return unreadable(`longer than ${LINE_CHARACTERS_MAX} characters`);
  const prefix = PREFIX.exec(line);
  if (prefix === null)
    return OTHER_PROGRAM.test(line) ? ignored("another program") : unreadable("not a line of the log of Postfix");
  const { time = "", host = "", queue = "" } = prefix.groups ?? {};
  const rest = line.slice(prefix[0].length).trimEnd();
  if (!rest.startsWith(DELIVERY)) return ignored("not a delivery");
  const replyAt = rest.indexOf(" (", rest.indexOf(", status="));
  const own = replyAt === -1 ? rest : rest.slice(0, replyAt);
  const [, dsn, status] = DSN.exec(own) ?? [];
  const recipient = rest.slice(DELIVERY.length, rest.indexOf(">, "));
  if (dsn === undefined || status === undefined) return unreadable("a delivery without dsn= and status=");
  if (status !== "bounced") return ignored(`status=${status}`);
  const diagnostic = replyAt === -1 ? null : rest.slice(replyAt + 2).replace(/\)$/, "");
  // Before Postfix 3.5 addresses have no quotes in the log: one can look like all of a line up to here.
  if (diagnostic?.includes(", status=") === true) return unreadable("a delivery whose reply has a status= of its own");
  return readBounce(
    {
      source: "postfix",
      eventId: `${host}/${queue}/${time}`,
      recipient,
      status: findStatus(dsn),
      diagnostic,
      atMs: timeOf(time, nowMs),
    },
    nowMs,
  );
};
