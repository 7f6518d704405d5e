import { z } from "zod";
import { waitFor } from "../../foundation/base/wait.ts";
import { formAction, page } from "../page.ts";
import { redirectTo } from "../visit.ts";
import type { ListStatus } from "../../blocklist/list-status.ts";
import { severityOf, zoneOf, maskKey } from "../../blocklist/lists/blocklist.ts";
import { Link, ButtonLink, OutsideLink, Badge } from "../components/inline.tsx";
import { Callout, PageHead, Panel, Empty, Columns, Row, Rows } from "../components/panel.tsx";
import { Table } from "../components/table.tsx";
import { Time, countText, numberText, Num, percentText } from "../components/figures.tsx";
import { HealthBadge, KIND_WORDS, StateBadge, type BlocklistUseCases } from "./common.tsx";
import type { TargetRow } from "../../blocklist/store.ts";
import type { HealthState } from "../../blocklist/lists/list-client.ts";
import { Button, PostForm } from "../components/form.tsx";

const TARGETS_SHOWN = 20;
/** Longer tests go on after the response. */
const TEST_WAIT_MS = 8_000;

const params = z.object({ list: z.string().regex(/^[a-z0-9-]{1,64}$/) });

/** The lists, and one list. */
export const listPages = ({ statuses, table, clock }: BlocklistUseCases) => [
  page({ path: "/blocklists/lists" }, ({ viewer }) => ({
    title: "Health of the lists",
    section: "blocklists",
    body: <ListsPage statuses={statuses.all(viewer.caller)} />,
  })),

  page({ path: "/blocklists/lists/:list", params }, async ({ viewer, params: { list: id } }) => {
    const status = statuses.find(viewer.caller, id);
    const query = { listings: statuses.listingsOf(viewer.caller, id), page: 1, perPage: TARGETS_SHOWN };
    const { targets, total } = await table.page(viewer.caller, query);
    const canTest = viewer.mode === "live";
    return {
      title: status.list.name,
      section: "blocklists",
      body: <ListPage {...{ status, targets, total, canTest }} />,
    };
  }),

  formAction({ path: "/blocklists/lists/:list/test", params }, async ({ viewer, params: { list: id }, request }) => {
    const limits = { timeoutMs: TEST_WAIT_MS, signal: request.signal };
    const tested = await waitFor(clock, statuses.test(viewer.caller, id), limits);
    const ok = tested.ok ? "Tested." : "The test takes longer. Load this page again in a minute.";
    return redirectTo(viewer, `/blocklists/lists/${id}`, { ok });
  }),
];

const testedMs = ({ health }: ListStatus): number | null =>
  health.reduce<number | null>(
    (last, { testedAtMs }) => (testedAtMs === null ? last : Math.max(last ?? 0, testedAtMs)),
    null,
  );

const worstOf = ({ health, state }: ListStatus) => health.find((one) => one.state === state);

const isBad = ({ state }: ListStatus): boolean => state !== null && state !== "healthy" && state !== "unknown";

/** If this many lists or more are all unusable, they have one cause. */
const ALL_MIN = 3;

/** Which lists can be believed through the resolver of this service. */
const ListsPage = ({ statuses }: { readonly statuses: readonly ListStatus[] }) => {
  const used = statuses.filter(({ isEnabled }) => isEnabled);
  const others = statuses.filter(({ isEnabled }) => !isEnabled);
  return (
    <>
      <PageHead
        title="Health of the lists"
        crumbs={[["Blocklists", "/blocklists"]]}
        meta="A list is believed only while its own test entries are answered as documented, through the resolver of this service. It is tested every 30 minutes."
      />
      <Conclusion statuses={used} />
      <Panel title="In use" aside={countText(used.length, "list")} isFlush>
        <Table
          caption="Lists in use, those with trouble first"
          columns={[
            { title: "State" },
            { title: "List", isMain: true },
            { title: "Finds" },
            { title: "Severity" },
            { title: "Queries today", align: "end" },
            { title: "Your targets on it", align: "end" },
            { title: "Tested" },
          ]}
          rows={used.map((status) => ({ key: status.list.id, cells: usedCells(status) }))}
        />
      </Panel>
      {others.length > 0 && <OtherLists statuses={others} />}
    </>
  );
};

const usedCells = (status: ListStatus) => {
  const { list, state, queriesToday, queriesPerDay, targets } = status;
  const atMs = testedMs(status);
  return [
    state === null ? <Badge kind="ok">Works</Badge> : <HealthBadge state={state} />,
    <>
      <Link href={`/blocklists/lists/${list.id}`} class="plain">
        {list.name}
      </Link>
      {isBad(status) && <span class="second">{worstOf(status)?.reason}</span>}
    </>,
    list.kinds.map((kind) => KIND_WORDS[kind]).join(", "),
    severityOf(list),
    <span class="num">
      {numberText(queriesToday)} <span class="soft">of {numberText(queriesPerDay)}</span>
    </span>,
    targets === 0 ? (
      <span class="soft">0</span>
    ) : (
      <Link href={`/blocklists?list=${list.id}`}>{numberText(targets)}</Link>
    ),
    atMs === null ? <span class="soft">not yet</span> : <Time atMs={atMs} />,
  ];
};

/** What is wrong, and what the operator of the service can do about it. */
const Conclusion = ({ statuses }: { readonly statuses: readonly ListStatus[] }) => {
  const bad = statuses.filter(isBad);
  const refused = bad.filter(({ state }) => state === "refused");
  if (bad.length === 0) {
    const isTested = statuses.some((status) => testedMs(status) !== null);
    return isTested ? (
      <Callout kind="ok" label="Works" title="Every list that can be tested works" />
    ) : (
      <Callout kind="info" label="Not tested" title="The lists are tested when a target is monitored" />
    );
  }
  const isOneCause = bad.length === statuses.length && bad.length >= ALL_MIN;
  return (
    <Callout
      kind="warn"
      label="Lists"
      title={
        isOneCause
          ? "No list can be used through the resolver of this service"
          : `${numberText(bad.length)} of ${countText(statuses.length, "list")} cannot be believed`
      }
    >
      <p>A target that is not listed there is unknown, never clean.</p>
      {(isOneCause || refused.length > 0) && (
        <p>
          {refused.length > 0 && `${countText(refused.length, "list")} refuse our queries. `}Most lists refuse public
          resolvers: the operator of this service can set <code>POSTWARDEN_DNS_SERVERS</code> to a recursive resolver of
          its own, for example unbound on the same machine.
        </p>
      )}
      {!isOneCause && bad.length > refused.length && (
        <p>
          {refused.length > 0 ? "The others" : "They"} do not respond as documented; the page of each says how, and what
          may help. They are tested again by themselves.
        </p>
      )}
    </Callout>
  );
};

const OtherLists = ({ statuses }: { readonly statuses: readonly ListStatus[] }) => (
  <Panel title="Not in use" aside={countText(statuses.length, "list")}>
    <details>
      <summary>Lists that need a key, are too unreliable by default, or were switched off</summary>
      <ul class="names">
        {statuses.map(({ list }) => (
          <li key={list.id}>
            <Link href={`/blocklists/lists/${list.id}`}>{list.name}</Link>
            <span class="soft small"> {list.notes}</span>
          </li>
        ))}
      </ul>
    </details>
    <p class="soft small">
      The operator of this service chooses the lists with <code>POSTWARDEN_BLOCKLISTS_ENABLE</code>,{" "}
      <code>POSTWARDEN_BLOCKLISTS_DISABLE</code> and <code>POSTWARDEN_BLOCKLIST_KEYS</code>.
    </p>
  </Panel>
);

const CONFIDENCE_WORDS = {
  A: "verified recently",
  B: "documented by its operator",
  C: "from other catalogues only",
} as const;

interface ListPageProps {
  readonly status: ListStatus;
  /** Targets that are on it, the worst first. */
  readonly targets: readonly TargetRow[];
  readonly total: number;
  readonly canTest: boolean;
}

/** One list: whether it can be believed, what its codes mean, who is on it. */
const ListPage = (props: ListPageProps) => {
  const { status, canTest } = props;
  const { list, isEnabled } = status;
  return (
    <>
      <PageHead
        title={list.name}
        crumbs={[
          ["Blocklists", "/blocklists"],
          ["Lists", "/blocklists/lists"],
        ]}
        meta={`${list.operator} · ${list.kinds.map((kind) => KIND_WORDS[kind]).join(", ")}`}
        actions={
          canTest && isEnabled ? (
            <PostForm action={`/blocklists/lists/${list.id}/test`}>
              <Button kind="main" icon="refresh-cw">
                Test now
              </Button>
            </PostForm>
          ) : undefined
        }
      />
      <ListState {...props} />
      <Columns side={<Facts status={status} />}>
        <Codes status={status} />
        <TargetsOnIt {...props} />
      </Columns>
    </>
  );
};

const HEALTH_TITLES: Readonly<Record<HealthState, string>> = {
  healthy: "Its answers can be believed",
  refused: "It refuses our queries",
  silent: "It does not even have its own test entry",
  wildcard: "It lists everything, so it says nothing",
  unreachable: "It does not respond",
  unknown: "Its answers are not proven",
};

const HEALTH_KINDS = {
  healthy: "ok",
  refused: "bad",
  silent: "warn",
  wildcard: "bad",
  unreachable: "warn",
  unknown: "unknown",
} as const;

const ListState = ({ status, canTest }: ListPageProps) => {
  const { isEnabled, health, list } = status;
  if (!isEnabled)
    return (
      <Callout kind="unknown" label="Not in use" title="Targets are not checked on this list">
        <p>
          {zoneOf(list) === null
            ? "It needs a key: the operator of this service sets it in POSTWARDEN_BLOCKLIST_KEYS."
            : "The operator of this service can add it to POSTWARDEN_BLOCKLISTS_ENABLE."}
        </p>
      </Callout>
    );
  if (!canTest)
    return (
      <Callout kind="info" label="Test data" title="The list of test keys">
        <p>It exists in this program only and always works.</p>
      </Callout>
    );
  return (
    <>
      {health.map(({ kind, state, reason, remedy, testedAtMs }) => (
        <Callout
          key={kind}
          kind={HEALTH_KINDS[state]}
          label={KIND_WORDS[kind]}
          title={HEALTH_TITLES[state]}
          aside={
            testedAtMs === null ? (
              "not tested yet"
            ) : (
              <>
                tested <Time atMs={testedAtMs} />
              </>
            )
          }
        >
          {reason !== null && <p>{reason}</p>}
          {remedy !== null && (
            <p>
              <b>{remedy}</b>
            </p>
          )}
          {state === "refused" && (
            <p>
              If you use a public resolver: set <code>POSTWARDEN_DNS_SERVERS</code> to a recursive resolver of your own.
            </p>
          )}
        </Callout>
      ))}
    </>
  );
};

const Facts = ({ status: { list, queriesToday, queriesPerDay } }: { readonly status: ListStatus }) => {
  const zone = zoneOf(list);
  const { usage } = list;
  return (
    <Panel title="About the list" isFlush>
      <Rows>
        <Row label="Zone">{zone === null ? "needs a key" : <span class="mono">{maskKey(list, zone)}</span>}</Row>
        <Row label="Queries today">
          <Num value={queriesToday} /> of <Num value={queriesPerDay} /> ({percentText(queriesToday / queriesPerDay)})
        </Row>
        <Row label="What we know of it">{CONFIDENCE_WORDS[list.confidence]}</Row>
        {list.delistUrl !== null && (
          <Row label="Removal">
            <OutsideLink href={list.delistUrl.replaceAll("{value}", "")}>Page of the operator</OutsideLink>
          </Row>
        )}
        {usage?.url != null && (
          <Row label="Terms">
            <OutsideLink href={usage.url}>{usage.cost ?? "Page of the operator"}</OutsideLink>
          </Row>
        )}
        {usage?.volume != null && <Row label="Allowed">{usage.volume}</Row>}
        {usage?.registration != null && <Row label="Registration">{usage.registration}</Row>}
      </Rows>
      {(usage !== null || list.notes !== null) && (
        <p class="panel-body soft small">{[usage?.terms, list.notes].filter((text) => text != null).join(" ")}</p>
      )}
    </Panel>
  );
};

const Codes = ({ status: { list } }: { readonly status: ListStatus }) => {
  const byListing = [...Map.groupBy(list.codes, ({ id }) => id).values()];
  return (
    <Panel title="What it can say" isFlush>
      <Table
        caption="The listings of this list"
        columns={[{ title: "Listing" }, { title: "Severity" }, { title: "Meaning", isText: true }]}
        rows={byListing.flatMap((codes) => {
          const [first] = codes;
          if (first === undefined) return [];
          const meanings = [...new Set(codes.map(({ meaning }) => meaning))].join(" ");
          return [{ key: first.id, cells: [first.name, first.severity, meanings] }];
        })}
      />
    </Panel>
  );
};

const TargetsOnIt = ({ status: { list }, targets, total }: ListPageProps) => (
  <Panel title="Your targets on it" aside={countText(total, "target")} isFlush>
    {total === 0 ? (
      <Empty title="None of your targets is on it">
        <p>As far as the last checks could find out.</p>
      </Empty>
    ) : (
      <Table
        caption="Targets on this list, the worst first"
        columns={[{ title: "State" }, { title: "Target", isMain: true }, { title: "Label" }]}
        rows={targets.map((row) => ({
          key: row.id,
          cells: [
            <StateBadge key="state" target={row} />,
            <Link key="name" href={`/blocklists/${row.id}`} class="mono">
              {row.value}
            </Link>,
            row.label ?? "",
          ],
        }))}
      />
    )}
    {total > targets.length && (
      <div class="panel-body">
        <ButtonLink href={`/blocklists?list=${list.id}`}>Show all {numberText(total)}</ButtonLink>
      </div>
    )}
  </Panel>
);
