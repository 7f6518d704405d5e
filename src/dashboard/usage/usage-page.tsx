import { CREDITS_TEXT } from "../components/credits.tsx";
import type { ComponentChildren } from "preact";
import { type DayRange, isoDay, monthBefore } from "../../foundation/base/days.ts";
import type {
  UsageFigures,
  UsageGroup,
  UsageReport,
  CreditForecast,
  NameOfKey,
} from "../../accounts/usage/account-usage.ts";
import { BarChart } from "../components/chart.tsx";
import { Mono } from "../components/copy.tsx";
import { Empty, Columns, PageHead, Panel, Stat, Stats } from "../components/panel.tsx";
import { Button, Field, GetForm, SelectField } from "../components/form.tsx";
import { ButtonLink, Link, Badge } from "../components/inline.tsx";
import { Pager } from "../components/pager.tsx";
import { Table } from "../components/table.tsx";
import { wordsOfReason } from "../components/verification.tsx";
import type { Balance, LedgerEntry } from "../../accounts/billing/store.ts";
import { Time, countText, Num, numberText, Percent, percentText } from "../components/figures.tsx";

/** The days that the page shows, and how they were chosen. */
export interface UsagePeriod {
  readonly range: DayRange;
  /** The calendar month, `YYYY-MM`; null for days. */
  readonly month: string | null;
  /** The length of the last days; null for a month, and for days from and to. */
  readonly chosen: number | null;
}

export interface UsageFacts extends UsagePeriod {
  readonly days: UsageReport;
  readonly keys: UsageReport;
  readonly reasons: UsageReport;
  readonly credits: CreditFacts | null;
  readonly nameOf: NameOfKey;
  /** Lengths of ranges to choose from, in days. */
  readonly ranges: readonly number[];
  readonly thisMonth: string;
  /** The months with verifications, the newest first. */
  readonly months: readonly string[];
}

/** Days shown one by one. The CSV has all. */
const DAYS_SHOWN = 14;

/** What an account used, by day, key and reason, and what is left of its credits. */
export const UsagePage = (facts: UsageFacts) => {
  const { days, range, month } = facts;
  const isUsed = days.total.total > 0 || (days.total.rateLimited ?? 0) > 0;
  return (
    <>
      <PageHead
        title="Usage"
        meta={
          <span>
            {countText(days.total.total, "verification")} {month !== null && `in ${monthText(month)}, `}from{" "}
            {dayText(isoDay(range.fromDay))} to {dayText(isoDay(range.toDay))}. Days are UTC.
          </span>
        }
      />
      <RangeChoice {...facts} />
      <Figures {...facts} />
      {isUsed ? <Used {...facts} /> : <NothingUsed {...facts} />}
    </>
  );
};

const DAY_FORMAT = new Intl.DateTimeFormat("en-GB", {
  weekday: "short",
  month: "short",
  day: "numeric",
  year: "numeric",
  timeZone: "UTC",
});

/** A day of the report for a person: "Sun, 22 Nov 2026". */
const dayText = (day: string): string => DAY_FORMAT.format(Date.parse(day));

/** The same without the year. */
const shortDayText = (day: string): string => dayText(day).replace(/ \d+$/, "");

const MONTH_FORMAT = new Intl.DateTimeFormat("en-US", { month: "long", year: "numeric", timeZone: "UTC" });

/** "November 2026". */
const monthText = (month: string): string => MONTH_FORMAT.format(Date.parse(month));

const RangeChoice = ({ ranges, chosen, range, month, thisMonth, months }: UsageFacts) => (
  <div class="range">
    <nav class="segments" aria-label="Range of days">
      <Link href={`/usage?month=${thisMonth}`} isCurrent={month === thisMonth}>
        This month
      </Link>
      <Link href={`/usage?month=${monthBefore(thisMonth)}`} isCurrent={month === monthBefore(thisMonth)}>
        Last month
      </Link>
      {ranges.map((length) => (
        <Link key={length} href={`/usage?days=${length}`} isCurrent={length === chosen}>
          {length} days
        </Link>
      ))}
    </nav>
    <div class="range-forms">
      {months.length > 0 && (
        <GetForm action="/usage" class="inline-form month">
          <SelectField
            name="month"
            label="Month"
            value={month ?? thisMonth}
            options={[...new Set([thisMonth, ...(month === null ? [] : [month]), ...months])]
              .toSorted()
              .toReversed()
              .map((one) => [one, monthText(one)] as const)}
          />
          <Button>Show</Button>
        </GetForm>
      )}
      <GetForm action="/usage" class="inline-form">
        <Field name="from" label="From" type="date" value={isoDay(range.fromDay)} />
        <Field name="to" label="To" type="date" value={isoDay(range.toDay)} />
        <Button>Show</Button>
      </GetForm>
    </div>
  </div>
);

const Figures = ({ days, credits }: UsageFacts) => {
  const { total, deliverable, rateLimited, credits: charged } = days.total;
  const uncharged = total - charged;
  return (
    <Stats>
      <Stat
        label="Verifications"
        value={<Num value={total} />}
        note={total === 0 ? "single and of lists" : `${percentText(deliverable / total)} deliverable`}
      />
      <Stat
        label="Credits charged"
        value={<Num value={charged} />}
        note={
          credits === null
            ? "test keys cost nothing"
            : uncharged > 0
              ? `${numberText(uncharged)} not charged: no conclusive reply`
              : "one for each conclusive reply"
        }
      />
      <Stat
        label="Rate-limited requests"
        value={<Num value={rateLimited ?? 0} />}
        note={rateLimited === 0 ? "none was refused" : "refused with 429, free"}
      />
      {credits !== null && (
        <Stat label="Credits left" value={<Num value={credits.balance.available} />} note={forecastText(credits)} />
      )}
    </Stats>
  );
};

const rangeQueryOf = ({ fromDay, toDay }: DayRange): string => `?from=${isoDay(fromDay)}&to=${isoDay(toDay)}`;

const Used = (facts: UsageFacts) => {
  const { days, range } = facts;
  const columnOf = (name: "deliverable" | "risky" | "undeliverable") => days.groups.map((day) => day[name]);
  return (
    <>
      <Panel title="Verifications a day" aside={<Csv by="day" range={range} />}>
        <BarChart
          caption="Verifications a day by verdict"
          days={days.groups.map(({ group }) => group)}
          series={[
            { title: "Deliverable", kind: "ok", values: columnOf("deliverable") },
            { title: "Risky", kind: "warn", values: columnOf("risky") },
            { title: "Undeliverable", kind: "bad", values: columnOf("undeliverable") },
          ]}
        />
      </Panel>
      <Keys {...facts} />
      <Columns side={<Reasons {...facts} />}>
        <Days {...facts} />
        {facts.credits !== null && <Grants {...facts.credits} />}
      </Columns>
    </>
  );
};

const Csv = ({ by, range }: { readonly by: string; readonly range: DayRange }) => (
  <Link href={`/usage/csv/${by}${rangeQueryOf(range)}`} class="nowrap">
    CSV
  </Link>
);

const Share = ({ part, whole }: { readonly part: number; readonly whole: number }): ComponentChildren => (
  <>
    <Num value={part} />{" "}
    <span class="second">
      <Percent part={part} whole={whole} />
    </span>
  </>
);

const Keys = ({ keys, nameOf, range }: UsageFacts) => (
  <Panel title="By key" aside={<Csv by="key" range={range} />} isFlush>
    <Table
      caption="Usage by key"
      columns={[
        { title: "Key or user" },
        { title: "Verifications", align: "end" },
        { title: "Deliverable", align: "end" },
        { title: "Risky", align: "end" },
        { title: "Undeliverable", align: "end" },
        { title: "Rate-limited", align: "end" },
        { title: "Credits", align: "end" },
      ]}
      rows={[
        ...keys.groups.map((one) => ({
          key: one.group,
          cells: [<KeyName key="name" id={one.group} name={nameOf(one.group)} />, ...figureCells(one)],
        })),
        { key: "total", cells: [<b key="name">Total</b>, ...figureCells(keys.total)] },
      ]}
    />
  </Panel>
);

const figureCells = (one: UsageFigures): ComponentChildren[] => [
  <Num key="total" value={one.total} />,
  <Share key="deliverable" part={one.deliverable} whole={one.total} />,
  <Share key="risky" part={one.risky} whole={one.total} />,
  <Share key="undeliverable" part={one.undeliverable} whole={one.total} />,
  <Num key="limited" value={one.rateLimited ?? 0} />,
  <Num key="credits" value={one.credits} />,
];

const KeyName = ({ id, name }: { readonly id: string; readonly name: string | null }) => {
  if (name !== null) return <b>{name}</b>;
  return (
    <>
      <span class="soft">{id.startsWith("user:") ? "former user" : "removed key"}</span> <Mono text={id} />
    </>
  );
};

const Reasons = ({ reasons, range }: UsageFacts) => (
  <Panel title="Why" aside={<Csv by="sub_status" range={range} />} isFlush>
    <Table
      caption="Verifications by reason"
      columns={[{ title: "Reason" }, { title: "Verifications", align: "end" }]}
      rows={reasons.groups.map(({ group, total }) => {
        const { kind, label, sentence } = wordsOfReason(group);
        return {
          key: group,
          cells: [
            <span key="reason" title={sentence}>
              <Badge kind={kind}>{label}</Badge>
            </span>,
            <span key="total" class="with-share">
              <Num value={total} /> <Percent part={total} whole={reasons.total.total} />
            </span>,
          ],
        };
      })}
    />
  </Panel>
);

const isActive = ({ total, rateLimited, credits }: UsageGroup): boolean =>
  total > 0 || credits > 0 || (rateLimited ?? 0) > 0;

const Days = ({ days, credits }: UsageFacts) => {
  const active = days.groups.filter(isActive).toReversed();
  const shown = active.slice(0, DAYS_SHOWN);
  return (
    <Panel title="Day by day" aside={active.length > shown.length ? `the newest ${DAYS_SHOWN}` : undefined} isFlush>
      <Table
        caption="Usage by day, the newest first"
        columns={[
          { title: "Day" },
          { title: "Verifications", align: "end" },
          { title: "Charged", align: "end" },
          ...(credits === null ? [] : [{ title: "Not charged", align: "end" } as const]),
          { title: "Rate-limited", align: "end" },
        ]}
        rows={shown.map((day) => ({
          key: day.group,
          cells: [
            <time key="day" class="nowrap" dateTime={day.group}>
              {shortDayText(day.group)}
            </time>,
            <Num key="total" value={day.total} />,
            <Num key="credits" value={day.credits} />,
            ...(credits === null ? [] : [<Num key="free" value={Math.max(0, day.total - day.credits)} />]),
            <Num key="limited" value={day.rateLimited ?? 0} />,
          ],
        }))}
      />
    </Panel>
  );
};

const NothingUsed = ({ credits }: UsageFacts) => (
  <>
    <Panel title="Verifications a day">
      <Empty
        title="No verifications in this period"
        action={
          <>
            <ButtonLink href="/verify" kind="main">
              Verify an address
            </ButtonLink>
            <ButtonLink href="/lists">Upload a list</ButtonLink>
            <ButtonLink href="/settings/keys">API keys</ButtonLink>
          </>
        }
      >
        <p>
          This page will show how many addresses each key verified, how they turned out, and what that cost.{" "}
          {CREDITS_TEXT}
        </p>
      </Empty>
    </Panel>
    {credits !== null && <Grants {...credits} />}
  </>
);

/** What the page shows of credits; test keys cost nothing and have none. */
export interface CreditFacts {
  readonly balance: Balance;
  readonly forecast: CreditForecast;
  readonly grants: ReadonlyArray<LedgerEntry & { readonly id: number }>;
  readonly next: number | null;
}

const YEARS_TEN_DAYS = 3_650;

/** How long the credits will last, in a sentence. */
const forecastText = ({ balance, forecast: { creditsPerDay, days, daysLeft } }: CreditFacts): string => {
  if (balance.available === 0) return "Nothing can be verified until credits are granted.";
  if (daysLeft === null) return "No credits were used in 30 days, so no estimate is possible.";
  const pace = creditsPerDay < 10 ? creditsPerDay.toFixed(1) : numberText(Math.round(creditsPerDay));
  const mean = `at ${pace} a day, the mean of ${days === 1 ? "today" : `the last ${days} days`}`;
  if (daysLeft > YEARS_TEN_DAYS) return `More than ten years ${mean}.`;
  return daysLeft === 0 ? `Less than a day ${mean}.` : `About ${countText(daysLeft, "day")} ${mean}.`;
};

/** The credits that were granted, with their notes. */
const Grants = ({ balance, grants, next }: CreditFacts) => (
  <Panel title="Credits in" aside={<Link href="/usage/credits.csv">CSV</Link>} isFlush>
    {balance.held > 0 && (
      <p class="panel-note">
        {countText(balance.held, "credit")} held for verifications that are not finished. Credits that are not charged
        are released.
      </p>
    )}
    {grants.length === 0 ? (
      <Empty title="No credits were granted">
        <p>
          The operator of this service grants credits: <code>postwarden credits grant</code>
        </p>
      </Empty>
    ) : (
      <Table
        caption="Credits granted, the newest first"
        columns={[{ title: "Granted" }, { title: "Credits", align: "end" }, { title: "Note" }]}
        rows={grants.map(({ id, atMs, available, note }) => ({
          key: id,
          cells: [
            <Time key="at" atMs={atMs} style="full" />,
            <span key="credits" class="num">
              +{numberText(available)}
            </span>,
            note ?? (
              <span key="none" class="soft">
                no note
              </span>
            ),
          ],
        }))}
      />
    )}
    <Pager next={next === null ? null : String(next)} shown={grants.length} />
  </Panel>
);
