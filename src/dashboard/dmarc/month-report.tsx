import type { ComponentChildren } from "preact";
import { z } from "zod";
import { sumBy } from "../../foundation/base/sums.ts";
import { dayOfTime, type DayRange, isoDay } from "../../foundation/base/days.ts";
import type { DomainOverview } from "../../dmarc/alerts/overview/domain-overview-store.ts";
import type { MonthFacts, OutcomeDay } from "../../dmarc/alerts/overview/dmarc-reading.ts";
import { readState } from "../../dmarc/records/domains/domain-state.ts";
import type { DomainRow } from "../../dmarc/records/domains/domain-store.ts";
import { isForeign } from "../../dmarc/insight/sources/domain-sources.ts";
import { percentOf } from "../../dmarc/insight/sources/rollup-rows.ts";
import type { Source } from "../../dmarc/insight/sources/source-response.ts";
import { Day, countText, numberText, Percent } from "../components/figures.tsx";
import { HelpText } from "../components/inline.tsx";
import { Table, type TableRow } from "../components/table.tsx";
import { CLASS_WORDS, policyWords, stepWords } from "./dmarc-words.ts";

/** A month that a report is about. */
export interface Month {
  /** `2026-10`. */
  readonly name: string;
  readonly range: DayRange;
}

export interface MonthReportProps {
  readonly row: DomainRow;
  readonly month: Month;
  readonly facts: MonthFacts;
  readonly overview: DomainOverview | null;
}

const SENDERS_MAX = 8;
const CHANGES_MAX = 10;
const MONTHS_MAX = 13;
const MONTH_NAMES = "January February March April May June July August September October November December".split(" ");

/** `October 2026`. */
export const monthTitle = (name: string): string =>
  `${MONTH_NAMES[Number(name.slice(5)) - 1] ?? ""} ${name.slice(0, 4)}`;

const monthOf = (year: number, index: number): Month => {
  const [fromDay, nextDay] = [index, index + 1].map((at) => dayOfTime(Date.UTC(year, at, 1)));
  const range = { fromDay: fromDay ?? 0, toDay: (nextDay ?? 1) - 1 };
  return { name: isoDay(range.fromDay).slice(0, 7), range };
};

/** The month of a time and those before, newest first, as far back as reports show. */
export const monthsUntil = (nowMs: number): readonly Month[] => {
  const now = new Date(nowMs);
  return Array.from({ length: MONTHS_MAX }, (_, at) => monthOf(now.getUTCFullYear(), now.getUTCMonth() - at));
};

export const monthQuery = z.object({ month: z.string().optional() });

/** The days of a domain with mail in a range, in order. */
type MailDays = (range: DayRange) => readonly number[];

/**
 * The month with a name. By default, and for one that is not offered, the last complete month with mail; where there is none, the
 * present month if it has mail, else the last complete one.
 */
export const monthNamed = (name: string | undefined, nowMs: number, mailDays: MailDays): Month => {
  const months = monthsUntil(nowMs);
  const named = months.find((one) => one.name === name);
  if (named !== undefined) return named;
  const [present, ...complete] = months;
  const days = mailDays({ fromDay: months.at(-1)?.range.fromDay ?? 0, toDay: dayOfTime(nowMs) });
  const hasMail = ({ range }: Month) => days.some((day) => day >= range.fromDay && day <= range.toDay);
  const now = new Date(nowMs);
  const last = monthOf(now.getUTCFullYear(), now.getUTCMonth() - 1);
  return complete.find(hasMail) ?? (present !== undefined && hasMail(present) ? present : last);
};

/** Everything about a month that somebody needs who does not work with mail: one printed page. */
export const MonthReport = ({ row, month, facts, overview }: MonthReportProps) => {
  const { summary, sources, before, days } = facts;
  const stopped = sumBy(sources, ({ quarantined, rejected }) => quarantined + rejected);
  const forged = sumBy(days, ({ strangers }) => strangers);
  const own = sumBy(days, (day) => day.own);
  return (
    <article class="report">
      <header>
        <h1>{row.domain}</h1>
        <p>
          Email security report, {monthTitle(month.name)}
          {row.label === null ? "" : `, ${row.label}`}
        </p>
      </header>
      {summary.messages === 0 ? (
        <p>No receiver reported mail of this month.</p>
      ) : (
        <>
          <p class="lead">{leadOf(facts)}</p>
          <dl class="tiles">
            <Tile label="Messages" note={changeWords(summary.messages, before.messages)}>
              {numberText(summary.messages)}
            </Tile>
            <Tile label="Passed the checks" note={shareWords(before.aligned, before.messages)}>
              <Percent part={summary.aligned} whole={summary.messages} />
            </Tile>
            <Tile label="Stopped by receivers" note="rejected or put in the spam folder">
              {numberText(stopped)}
            </Tile>
            <Tile label="Own mail that failed" note={`${numberText(forged)} messages were sent by others`}>
              {numberText(own)}
            </Tile>
          </dl>
          <Bars days={days} />
          <Senders sources={sources} />
        </>
      )}
      <section>
        <h2>What changed</h2>
        <Changes {...{ facts, month }} />
      </section>
      <section>
        <h2>Next step</h2>
        <NextStep overview={overview} />
        <p class="soft">
          Policy now: {policyWords(readState(row.state)?.believed.policy)}. With p=reject, receivers refuse mail that
          only pretends to come from {row.domain}.
        </p>
      </section>
      <footer class="soft small">
        Days are in UTC. Counts come from {countText(summary.reports, "report")} of{" "}
        {countText(summary.reporters, "mail receiver")}; other receivers send no reports.
      </footer>
    </article>
  );
};

const leadOf = ({ summary, before }: MonthFacts): string => {
  const share = percentOf(summary.aligned, summary.messages) ?? 0;
  const was = percentOf(before.aligned, before.messages);
  const trend =
    was === null
      ? ""
      : share > was
        ? `, after ${was} % the month before`
        : share < was
          ? `, down from ${was} %`
          : ", as the month before";
  return `Receivers reported ${countText(summary.messages, "message")}; ${share} % passed DMARC${trend}.`;
};

const HUNDRED = 100;

const changeWords = (now: number, before: number): string => {
  if (before === 0) return "no reports about the month before";
  const percent = Math.round((now / before - 1) * HUNDRED);
  return `${percent >= 0 ? "+" : "−"}${numberText(Math.abs(percent))} % on the month before`;
};

const shareWords = (aligned: number, messages: number): string => {
  const share = percentOf(aligned, messages);
  return share === null ? "no reports about the month before" : `${share} % the month before`;
};

const NextStep = ({ overview }: { readonly overview: DomainOverview | null }) => {
  if (overview === null) return <p>Not computed yet.</p>;
  if (overview.next === null) return <p>No step is left.</p>;
  return (
    <>
      <p>
        <b>{stepWords(overview.next)}</b>
      </p>
      <p>
        <HelpText text={overview.next.why} />
      </p>
    </>
  );
};

const Tile = ({
  label,
  note,
  children,
}: {
  readonly label: string;
  readonly note: string;
  readonly children: ComponentChildren;
}) => (
  <div>
    <dt>{label}</dt>
    <dd>{children}</dd>
    <dd class="soft small">{note}</dd>
  </div>
);

const WIDTH = 620;
const HEIGHT = 90;

const PARTS = [
  ["aligned", "ok", "Passed"],
  ["own", "bad", "Own mail that failed"],
  ["forwarded", "unknown", "Forwarded"],
  ["strangers", "warn", "Sent by others"],
] as const;

/** The mail of each day, drawn here so that it prints without a script. */
const Bars = ({ days }: { readonly days: readonly OutcomeDay[] }) => {
  const highest = Math.max(1, ...days.map((day) => sumBy(PARTS, ([part]) => Math.max(0, day[part]))));
  const step = WIDTH / days.length;
  return (
    <figure class="month-bars">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label="Messages a day by outcome">
        {days.map((day, at) => {
          let top = HEIGHT;
          return PARTS.map(([part, kind]) => {
            const height = (Math.max(0, day[part]) / highest) * HEIGHT;
            top -= height;
            return height === 0 ? null : (
              <rect key={`${day.day} ${part}`} class={kind} x={at * step} y={top} width={step - 2} height={height} />
            );
          });
        })}
      </svg>
      <figcaption>
        <ul class="legend">
          {PARTS.filter(([part]) => days.some((day) => day[part] > 0)).map(([part, kind, title]) => (
            <li key={part}>
              <span class={`swatch ${kind}`} /> {title} <b class="num">{numberText(sumBy(days, (day) => day[part]))}</b>
            </li>
          ))}
        </ul>
      </figcaption>
    </figure>
  );
};

const Senders = ({ sources }: { readonly sources: readonly Source[] }) => {
  const own = sources.filter((source) => !isForeign(source)).toSorted((a, b) => b.messages - a.messages);
  const rest = own.slice(SENDERS_MAX);
  return (
    <section>
      <h2>Who sends</h2>
      <Table
        caption="Senders of the month"
        columns={[
          { title: "Sender", isMain: true },
          { title: "Class" },
          { title: "Messages", align: "end" },
          { title: "Passed", align: "end" },
        ]}
        rows={[
          ...own.slice(0, SENDERS_MAX).map(({ key, name, classification, messages, aligned }) => ({
            key,
            cells: [
              name,
              CLASS_WORDS[classification].text,
              numberText(messages),
              <Percent part={aligned} whole={messages} />,
            ],
          })),
          ...(rest.length > 0 ? [restRow(rest)] : []),
        ]}
      />
    </section>
  );
};

const restRow = (rest: ReadonlyArray<Pick<Source, "messages" | "aligned">>): TableRow => {
  const messages = sumBy(rest, (source) => source.messages);
  return {
    key: "rest",
    cells: [
      countText(rest.length, "other sender"),
      "",
      numberText(messages),
      <Percent part={sumBy(rest, ({ aligned }) => aligned)} whole={messages} />,
    ],
  };
};

/** With a capital letter, but for the name of a host. */
const asSentence = (text: string): string => {
  const [first = ""] = text.split(/[\s:]/, 1);
  return first.includes(".") ? text : text.charAt(0).toUpperCase() + text.slice(1);
};

const Changes = ({ facts, month }: Pick<MonthReportProps, "facts" | "month">) => {
  const first = isoDay(month.range.fromDay);
  const recordDays = new Set(facts.changes.map(({ day }) => day));
  // The change of a record says more than its alert.
  const alerts = facts.alerts.filter(({ rule, day }) => rule !== "record_changed" || !recordDays.has(day));
  const changes = [
    ...facts.changes.map(({ day, text }) => ({ day, text })),
    ...alerts.map(({ day, summary }) => ({ day, text: asSentence(summary) })),
    ...facts.sources
      .filter((source) => source.first_day >= first && source.aligned > 0 && !isForeign(source))
      .map(({ first_day: day, name }) => ({ day, text: `New sender: ${name}` })),
  ].toSorted((a, b) => (a.day < b.day ? -1 : 1));
  if (changes.length === 0) return <p>Nothing: no new sender, no alert, no change of the DMARC record.</p>;
  return (
    <ul class="changes">
      {changes.slice(0, CHANGES_MAX).map(({ day, text }) => (
        <li key={`${day} ${text}`}>
          <span class="num soft">
            <Day day={day} />
          </span>{" "}
          {text}
        </li>
      ))}
      {changes.length > CHANGES_MAX && <li class="soft">and {numberText(changes.length - CHANGES_MAX)} more</li>}
    </ul>
  );
};
