import type { ListStatus } from "../../blocklist/list-status.ts";
import { severityOf } from "../../blocklist/lists/blocklist.ts";
import { Badge } from "../components/badge.tsx";
import { Link } from "../components/link.tsx";
import { countText, numberText } from "../components/number.tsx";
import { Callout, PageHead, Panel } from "../components/panel.tsx";
import { Table } from "../components/table.tsx";
import { Time } from "../components/time.tsx";
import { HealthBadge, KIND_WORDS } from "./words.tsx";

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
export const ListsPage = ({ statuses }: { readonly statuses: readonly ListStatus[] }) => {
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
            { title: "List" },
            { title: "Finds", isWide: true },
            { title: "Severity" },
            { title: "Queries today", align: "end", isWide: true },
            { title: "Your targets on it", align: "end" },
            { title: "Tested", isWide: true },
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
      <p>What is not listed there is unknown, never clean.</p>
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
