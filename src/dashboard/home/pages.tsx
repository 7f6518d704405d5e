import type { Clock } from "../../foundation/base/clock.ts";
import { dayOfTime, isoDay } from "../../foundation/base/days.ts";
import type { RunningList } from "../../bulk/job-queries.ts";
import type { TargetFigures } from "../../blocklist/target-table.ts";
import type { MailInName } from "../../dmarc/alerts/overview/dmarc-overview.ts";
import type { AccountUsage, UsageReport } from "../../accounts/usage/account-usage.ts";
import type { History } from "../../verify/history.ts";
import { page } from "../page.ts";
import { usePage, type Viewer } from "../visit.ts";
import type { AttentionBoard } from "./attention-board.ts";
import type { AttentionItem } from "../../foundation/base/attention.ts";
import { BarChart } from "../components/chart.tsx";
import { Mono } from "../components/copy.tsx";
import { ButtonLink, HelpText, Link, Badge } from "../components/inline.tsx";
import { Callout, Columns, PageHead, Panel, Stat, Stats } from "../components/panel.tsx";
import { durationText, Time, countText, numberText, percentText } from "../components/figures.tsx";
import { ResultBadge, VerifyBox } from "../components/verification.tsx";
import type { VerificationRow } from "../../verify/store.ts";

export interface HomeUseCases {
  readonly clock: Clock;
  readonly board: AttentionBoard;
  readonly usage: AccountUsage;
  readonly history: History;
  readonly runningLists: (viewer: Viewer) => readonly RunningList[];
  readonly targets: (viewer: Viewer) => TargetFigures;
  readonly mailInName: (viewer: Viewer) => MailInName;
}

const DAYS = 30;
const LATEST = 6;

/** The home page: is anything wrong? */
export const createHomePages = (useCases: HomeUseCases) => [
  page({ path: "/" }, async ({ viewer }) => {
    const { clock, board, usage, history } = useCases;
    const toDay = dayOfTime(clock.nowMs());
    const fromDay = toDay - DAYS + 1;
    const latest = await history.page(viewer.caller, {}, { before: null, limit: LATEST });
    const facts: HomeFacts = {
      attention: board.items(viewer),
      days: await usage.report(viewer.caller, { fromDay, toDay }, "day"),
      fromDay,
      toDay,
      latest: latest.rows,
      lists: useCases.runningLists(viewer),
      targets: useCases.targets(viewer),
      mail: useCases.mailInName(viewer),
    };
    return { title: "Home", section: "home", body: <HomeBody {...facts} /> };
  }),
];

/** Open problems come first, then numbers. */
const HomeBody = (facts: HomeFacts) => (
  <>
    <Greeting count={facts.attention.length} />
    {isNew(facts) && <FirstSteps />}
    <NeedsAttention {...facts} />
    <Figures {...facts} />
    <Columns side={<VerifyPanel {...facts} />}>
      <VerdictsPanel {...facts} />
    </Columns>
  </>
);

/** Nothing is verified or monitored yet, so nothing can need attention. */
const isNew = ({ latest, days, targets, mail }: HomeFacts): boolean =>
  latest.length === 0 && days.total.total === 0 && targets.total === 0 && mail.domains === 0;

const FirstSteps = () => (
  <Callout
    kind="info"
    title="Set up Postwarden"
    actions={
      <ButtonLink href="/welcome" kind="main">
        First steps
      </ButtonLink>
    }
  >
    <p>Create a key, verify a first address, and choose the domains and addresses that are monitored for you.</p>
  </Callout>
);

const Greeting = ({ count }: { readonly count: number }) => (
  <PageHead title="Overview" meta={count === 0 ? "No open problems." : `${countText(count, "open problem")}.`} />
);

/** More items are on the pages of their sections. */
const ITEMS_MAX = 12;

const NeedsAttention = (facts: HomeFacts) => {
  const { nowMs } = usePage();
  const items = facts.attention;
  const isMonitoring = facts.targets.total > 0 || facts.mail.domains > 0;
  return (
    <Panel
      title="Needs attention"
      aside={
        <>
          as of <Time atMs={nowMs} style="clock" />
        </>
      }
      isFlush
    >
      {items.length === 0 && (
        <div class="panel-body">
          <p>
            {isMonitoring ? (
              <>
                <Badge kind="ok">All clear</Badge> Nothing is listed, no DMARC record has changed, and no list is stuck.
              </>
            ) : (
              <>
                <Badge kind="unknown">Not monitored</Badge> No domain and no address is monitored yet. No list is stuck.
              </>
            )}
          </p>
        </div>
      )}
      <ul class="items">
        {items.slice(0, ITEMS_MAX).map((item) => (
          <Item key={`${item.action.path} ${item.title}`} item={item} />
        ))}
      </ul>
      {items.length > ITEMS_MAX && (
        <p class="panel-foot soft small">
          {countText(items.length - ITEMS_MAX, "more thing")}, less urgent. The sections in the navigation show all of
          them.
        </p>
      )}
    </Panel>
  );
};

const Item = ({ item }: { readonly item: AttentionItem }) => (
  <li>
    <span>
      <Badge kind={item.severity}>{item.label}</Badge>
    </span>
    <div class="prose">
      <h3>{item.title}</h3>
      <p class="soft">
        {item.sinceMs !== null && (
          <>
            Since <Time atMs={item.sinceMs} style="full" />.{" "}
          </>
        )}
        <HelpText text={item.detail} />
      </p>
    </div>
    <ButtonLink href={item.action.path}>{item.action.text}</ButtonLink>
  </li>
);

const Figures = ({ days, toDay, lists, mail, targets }: HomeFacts) => {
  const today = days.groups.find(({ group }) => group === isoDay(toDay));
  return (
    <Stats>
      <Stat
        label="Verified today"
        href="/usage"
        value={numberText(today?.total ?? 0)}
        note={
          today === undefined || today.total === 0
            ? "none yet (day in UTC)"
            : `${percentText(today.deliverable / today.total)} deliverable`
        }
      />
      <Stat label="Lists running" href="/lists" value={numberText(lists.length)} note={<RunningNote lists={lists} />} />
      <Stat
        label="Mail in your name, 7 days"
        href="/dmarc"
        value={mail.domains === 0 ? "–" : numberText(mail.messages)}
        note={mailNote(mail)}
      />
      <Stat
        label="Targets clean"
        href="/blocklists"
        value={targets.total === 0 ? "–" : `${numberText(targets.clean)} / ${numberText(targets.total)}`}
        note={targetsNote(targets)}
      />
    </Stats>
  );
};

const RunningNote = ({ lists }: { readonly lists: readonly RunningList[] }) => {
  const [first] = lists;
  if (first === undefined) return <>none is waiting</>;
  const { addresses, secondsLeft, title } = first;
  const done = addresses.total === 0 ? "" : `, ${percentText(addresses.finished / addresses.total)}`;
  return (
    <>
      <Link href={`/lists/${first.id}`}>{title}</Link>
      {done}
      {secondsLeft !== null && `, ${durationText(secondsLeft * 1_000)} left`}
    </>
  );
};

const mailNote = ({ domains, messages, aligned }: HomeFacts["mail"]) => {
  if (domains === 0) return <Link href="/dmarc/new">Monitor a domain</Link>;
  return messages === 0 ? "no reports in these days" : `${percentText(aligned / messages)} aligned`;
};

const targetsNote = ({ total, listed, unknown, pending, paused }: HomeFacts["targets"]) => {
  if (total === 0) return <Link href="/blocklists/new">Monitor an address</Link>;
  const parts = [
    [listed, "listed"],
    [unknown, "unknown"],
    [pending, "not checked yet"],
    [paused, "paused"],
  ] as const;
  const shown = parts.filter(([count]) => count > 0).map(([count, what]) => `${numberText(count)} ${what}`);
  return shown.length === 0 ? "none is listed" : shown.join(", ");
};

const VerdictsPanel = ({ days, fromDay, toDay }: HomeFacts) => {
  const byDay = new Map(days.groups.map((group) => [group.group, group]));
  const names = Array.from({ length: toDay - fromDay + 1 }, (_, at) => isoDay(fromDay + at));
  const valuesOf = (verdict: "deliverable" | "risky" | "undeliverable") =>
    names.map((day) => byDay.get(day)?.[verdict] ?? 0);
  return (
    <Panel title="Verifications" aside={<Link href="/usage">30 days</Link>}>
      {days.total.total === 0 ? (
        <p class="soft">Verdicts by day appear here as soon as an address or a list is verified.</p>
      ) : (
        <BarChart
          caption="Verifications a day by verdict, 30 days"
          days={names}
          series={[
            { title: "Deliverable", kind: "ok", values: valuesOf("deliverable") },
            { title: "Risky", kind: "warn", values: valuesOf("risky") },
            { title: "Undeliverable", kind: "bad", values: valuesOf("undeliverable") },
          ]}
        />
      )}
    </Panel>
  );
};

const VerifyPanel = ({ latest }: HomeFacts) => (
  <Panel title="Verify an address" isFlush>
    <div class="panel-body">
      <VerifyBox />
    </div>
    {latest.length > 0 && (
      <ul class="latest">
        {latest.map((row) => (
          <li key={row.id}>
            <Link href={`/verify/${row.id}`}>
              <Mono text={row.email} charactersMax={30} />
            </Link>
            <ResultBadge row={row} />
          </li>
        ))}
      </ul>
    )}
  </Panel>
);

/** Everything that the home page shows. */
interface HomeFacts {
  readonly attention: readonly AttentionItem[];
  /** The last 30 days by day; the last one is today (UTC). */
  readonly days: UsageReport;
  readonly fromDay: number;
  readonly toDay: number;
  readonly lists: readonly RunningList[];
  readonly targets: TargetFigures;
  readonly mail: MailInName;
  readonly latest: readonly VerificationRow[];
}
