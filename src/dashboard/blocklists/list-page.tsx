import type { ListStatus } from "../../blocklist/list-status.ts";
import type { TargetRow } from "../../blocklist/store.ts";
import { zoneOf } from "../../blocklist/lists/blocklist.ts";
import type { HealthState } from "../../blocklist/lists/list-finding.ts";
import { maskKey } from "../../blocklist/lists/list-keys.ts";
import { Button, PostForm } from "../components/form.tsx";
import { Empty } from "../components/empty.tsx";
import { ButtonLink, Link, OutsideLink } from "../components/link.tsx";
import { countText, Num, numberText, percentText } from "../components/number.tsx";
import { Callout, Columns, PageHead, Panel, Row, Rows } from "../components/panel.tsx";
import { Table } from "../components/table.tsx";
import { Time } from "../components/time.tsx";
import { KIND_WORDS, StateBadge } from "./words.tsx";

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
export const ListPage = (props: ListPageProps) => {
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

const TITLES: Readonly<Record<HealthState, string>> = {
  healthy: "Its answers can be believed",
  refused: "It refuses our queries",
  silent: "It does not even have its own test entry",
  wildcard: "It lists everything, so it says nothing",
  unreachable: "It does not respond",
  unknown: "Its answers are not proven",
};

const KINDS = {
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
          kind={KINDS[state]}
          label={KIND_WORDS[kind]}
          title={TITLES[state]}
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
        columns={[{ title: "Listing" }, { title: "Severity" }, { title: "Meaning" }]}
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
        isStacked
        columns={[{ title: "State" }, { title: "Target" }, { title: "Label" }]}
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
