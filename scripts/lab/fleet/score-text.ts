import { figuresOf, type FleetScore } from "./score.ts";
import type { SenderScore } from "./score-senders.ts";

const THOUSANDTHS = 3;
const FALSE_SHOWN = 6;
const WEEK_SHOWN = 8;

const number = (count: number): string => count.toLocaleString("en");
const share = (value: number): string => value.toFixed(THOUSANDTHS);
const pad = (text: string, width: number): string => text.padEnd(width);

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string => {
  const widths = head.map((title, at) => Math.max(title.length, ...rows.map((row) => row[at]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, at) => pad(cell, widths[at] ?? 0))
      .join("  ")
      .trimEnd();
  return [line(head), ...rows.map(line)].join("\n");
};

const senderLine = (sender: SenderScore): string[] => {
  const { domain, who, truth, messages, right, takenFor, keys, mixedWith, isApart } = sender;
  const wrong = Object.entries(takenFor).map(([kind, count]) => `${number(count)} ${kind}`);
  const split = keys.slice(0, 3).map(([key, count]) => `${key} ${number(count)}`);
  const more = keys.length > 3 ? ` and ${keys.length - 3} more` : "";
  return [
    ...[domain, who, truth, number(messages), right === messages ? "all" : `${number(right)}; ${wrong.join(", ")}`],
    isApart ? "yes" : `no: ${mixedWith.length > 0 ? `with ${mixedWith.join(", ")}` : "split"}`,
    `${split.join(", ")}${more}`,
  ];
};

/** Senders that were taken for something else on the way. */
const weeksText = ({ weeks }: FleetScore): string =>
  weeks
    .map(({ day, senders }) => {
      const wrong = senders.filter(({ messages, right }) => right < messages);
      const rows = wrong
        .toSorted((a, b) => b.messages - b.right - (a.messages - a.right))
        .slice(0, WEEK_SHOWN)
        .map(senderLine);
      return `Worst classes of the week before day ${day}\n${table(["domain", "sender", "truth", "messages", "right", "apart", "sources"], rows)}`;
    })
    .join("\n\n");

/** Senders that are not right in every way. */
const sendersText = ({ senders }: FleetScore): string => {
  const wrong = senders.filter(({ messages, right, isApart }) => right < messages || !isApart);
  const rows = wrong.toSorted((a, b) => b.messages - b.right - (a.messages - a.right)).map(senderLine);
  return `Senders not wholly right (${wrong.length} of ${senders.length})\n${table(["domain", "sender", "truth", "messages", "right", "apart", "sources"], rows)}`;
};

const alertsText = ({ alerts }: FleetScore): string => {
  const rows = alerts.map((one) => {
    const rules = Map.groupBy(one.false, ({ rule }) => rule);
    const kinds = [...rules].map(([rule, all]) => `${all.length} ${rule}`).join(", ");
    return [
      one.domain,
      String(one.alerts),
      String(one.false.length),
      one.falsePer30Days.toFixed(1),
      String(one.alertMails),
      String(one.digests),
      kinds,
    ];
  });
  const texts = alerts.flatMap(({ domain, false: wrong }) =>
    wrong.slice(0, FALSE_SHOWN).map(({ rule, at, summary }) => `  ${domain} ${at.slice(0, 10)} ${rule}: ${summary}`),
  );
  return `Alerts\n${table(["domain", "alerts", "about nothing new", "in 30 days", "mails", "digests", "of them"], rows)}\nSome about nothing new:\n${texts.join("\n")}`;
};

const eventsText = ({ events }: FleetScore): string => {
  const rows = events.map(({ domain, what, told, delayDays, namesCause, isRight, isOptional, texts }) => [
    ...[isRight ? "ok" : "WRONG", domain, isOptional ? `(${what})` : what, String(told)],
    delayDays === null ? "-" : `${delayDays.toFixed(1)} d`,
    told === 0 ? "-" : namesCause ? "yes" : "no",
    texts.slice(0, 3).join(" | ").slice(0, 260),
  ]);
  return `Events (in brackets: need not be told)\n${table(["", "domain", "event", "told", "after", "cause", "texts"], rows)}`;
};

const adviceText = ({ advice }: FleetScore): string => {
  const lines = advice.map(({ domain, day, expert, said, problems, isRight }) =>
    [
      `${isRight ? "ok   " : "WRONG"} ${domain}, day ${day}: ${said}`,
      ...(isRight ? [] : [`      expert: ${expert}; ${problems.join("; ")}`]),
    ].join("\n"),
  );
  return `Advice\n${lines.join("\n")}`;
};

const claimsText = ({ claims }: FleetScore): string =>
  [
    "Claims",
    ...claims.map(
      ({ what, expected, got, isRight }) => `${isRight ? "ok   " : "WRONG"} ${what}: ${got} (expected ${expected})`,
    ),
  ].join("\n");

/** The figures in a few lines. */
export const summaryText = (score: FleetScore): string => {
  const figures = figuresOf(score);
  const real = score.senders.filter(({ isPooled }) => !isPooled);
  const must = score.events.filter(({ isOptional }) => !isOptional);
  const count = <T>(items: readonly T[], isGood: (item: T) => boolean): string =>
    `${items.filter(isGood).length}/${items.length}`;
  return [
    `Fleet, seed ${score.seed}: ${score.domains} domains, ${score.days} days, ${number(score.reportMails)} report mails, ${number(score.messages)} messages`,
    table(
      ["class", "messages", "precision", "recall"],
      score.classes.map(({ kind, messages, precision, recall }) => [
        kind,
        number(messages),
        share(precision),
        share(recall),
      ]),
    ),
    ...score.weeks.map(
      ({ day, classes }) =>
        `the week before day ${day}: ${classes.map(({ kind, precision, recall }) => `${kind} ${share(precision)}/${share(recall)}`).join(", ")}`,
    ),
    `senders told apart: ${count(real, ({ isApart }) => isApart)}`,
    `events right: ${count(score.events, ({ isRight }) => isRight)}; must be told: ${count(must, ({ told }) => told > 0)}, once: ${count(must, ({ told }) => told === 1)}, cause named: ${count(must, ({ namesCause }) => namesCause)}`,
    `alerts about nothing new: ${score.alerts.reduce((sum, one) => sum + one.false.length, 0)}, at most ${figures.falsePer30DaysMax.toFixed(1)} in 30 days for a domain; mails: ${score.alerts.reduce((sum, one) => sum + one.alertMails, 0)}`,
    `advice as an expert's: ${count(score.advice, ({ isRight }) => isRight)}; claims: ${count(score.claims, ({ isRight }) => isRight)}`,
  ].join("\n");
};

/** The whole score, to be read by people. */
export const scoreText = (score: FleetScore): string =>
  [
    summaryText(score),
    sendersText(score),
    weeksText(score),
    eventsText(score),
    alertsText(score),
    adviceText(score),
    claimsText(score),
    "",
  ].join("\n\n");
