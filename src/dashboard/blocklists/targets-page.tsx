import { z } from "zod";
import type { ListingView } from "../../blocklist/listings.ts";
import type { KeyMode } from "../../foundation/base/secrets.ts";
import type { TargetRow } from "../../blocklist/store.ts";
import { TARGET_ORDERS, TARGET_STATES, type TargetFigures } from "../../blocklist/target-table.ts";
import { SEVERITIES } from "../../foundation/base/severity.ts";
import { Button, CheckField, Field, Filters, PostForm, SelectField } from "../components/form.tsx";
import { ButtonLink, DownloadLink, Link, withParameters } from "../components/inline.tsx";
import { Mono } from "../components/copy.tsx";
import { Empty, Columns, PageHead, Panel, Stat, Stats } from "../components/panel.tsx";
import { Pager, rowsParameter } from "../components/pager.tsx";
import type { RowMenuProps } from "../components/row-menu.tsx";
import { Table, type TableRow } from "../components/table.tsx";
import { Time, countText, Num, numberText } from "../components/figures.tsx";
import { usePage } from "../visit.ts";
import { Discover } from "./new-pages.tsx";
import { SEVERITY_OPTIONS, STATE_WORDS, StateBadge } from "./common.tsx";

const TEXT_CHARACTERS_MAX = 320;
const PAGES_MAX = 10_000;

/** The query of the table. `cursor` is the number of the page. */
export const targetsQuery = z.object({
  state: z.enum(TARGET_STATES).optional(),
  severity: z.enum(SEVERITIES).optional(),
  list: z.string().max(100).optional(),
  label: z.string().max(TEXT_CHARACTERS_MAX).optional(),
  q: z.string().trim().min(1).max(TEXT_CHARACTERS_MAX).optional(),
  sort: z.enum(TARGET_ORDERS).default("worst"),
  cursor: z.coerce.number().int().min(1).max(PAGES_MAX).default(1),
  rows: rowsParameter,
});
export type TargetsQuery = z.output<typeof targetsQuery>;

/** A target with what its row shows of its listings. */
export interface ShownTarget {
  readonly row: TargetRow;
  readonly listings: readonly ListingView[];
}

export interface TargetsPageProps {
  readonly mode: KeyMode;
  readonly figures: TargetFigures;
  readonly query: TargetsQuery;
  readonly targets: readonly ShownTarget[];
  readonly total: number;
  readonly labels: readonly string[];
  readonly lists: ReadonlyArray<readonly [id: string, name: string]>;
}

const BULK = "/blocklists/bulk";
const BULK_FORM = "bulk";
const NAMES_MAX = 3;

/** All targets of the account, the worst first. */
export const TargetsPage = (props: TargetsPageProps) => {
  const { figures, query, total } = props;
  if (figures.total === 0) return <FirstTarget mode={props.mode} />;
  return (
    <>
      <PageHead
        title="Blocklists"
        meta={conclusionOf(figures)}
        actions={
          <>
            <ButtonLink href="/blocklists/lists">Health of the lists</ButtonLink>
            <ButtonLink href="/blocklists/new" kind="main" icon="plus">
              Add targets
            </ButtonLink>
          </>
        }
      />
      <Figures {...figures} />
      <Panel isFlush>
        <TargetFilters {...props} />
        {total === 0 ? (
          <Empty title="No target matches" action={<ButtonLink href="/blocklists">Show all targets</ButtonLink>}>
            <p>Change or remove a filter.</p>
          </Empty>
        ) : (
          <Targets {...props} />
        )}
        <Pager
          next={query.cursor * query.rows < total ? String(query.cursor + 1) : null}
          shown={props.targets.length}
          first={(query.cursor - 1) * query.rows + 1}
          total={total}
          rows={query.rows}
        />
      </Panel>
    </>
  );
};

const conclusionOf = ({ listed, unknown, clean, pending, paused, total }: TargetFigures): string => {
  if (listed > 0)
    return `${countText(listed, "target")} listed. ${unknown === 0 ? "" : `${numberText(unknown)} could not be checked.`}`;
  if (unknown > 0) return `Nothing is known to be listed, but ${countText(unknown, "target")} could not be checked.`;
  if (clean === 0 && pending > 0) return "The first checks run within a minute.";
  return paused === total ? "All targets are paused." : "Nothing is listed.";
};

const Figures = ({ total, clean, listed, unknown, pending, paused, worst }: TargetFigures) => (
  <Stats>
    <Stat
      label="Clean"
      value={`${numberText(clean)} / ${numberText(total)}`}
      note={pending === 0 ? "every six hours" : `${numberText(pending)} wait for the first check`}
      href="/blocklists?state=clean"
    />
    <Stat
      label="Listed"
      value={<Num value={listed} />}
      note={worst === null ? "nothing" : `worst severity: ${worst}`}
      href="/blocklists?state=listed"
    />
    <Stat label="Unknown" value={<Num value={unknown} />} note="no list responded" href="/blocklists?state=unknown" />
    <Stat label="Paused" value={<Num value={paused} />} note="not checked" href="/blocklists?state=paused" />
  </Stats>
);

const ANY = ["", "Any"] as const;

const TargetFilters = ({ query, labels, lists }: TargetsPageProps) => (
  <Filters action="/blocklists">
    <Field name="q" label="Target or label" type="search" value={query.q ?? null} />
    <SelectField
      name="state"
      label="State"
      value={query.state ?? ""}
      options={[ANY, ...TARGET_STATES.map((state) => [state, STATE_WORDS[state]] as const)]}
    />
    <SelectField
      name="severity"
      label="Worst severity"
      value={query.severity ?? ""}
      options={[ANY, ...SEVERITY_OPTIONS]}
    />
    <SelectField name="list" label="List" value={query.list ?? ""} options={[ANY, ...lists]} />
    {labels.length > 0 && (
      <SelectField
        name="label"
        label="Label"
        value={query.label ?? ""}
        options={[ANY, ...labels.map((label) => [label, label] as const)]}
      />
    )}
    {query.sort !== "worst" && <input type="hidden" name="sort" value={query.sort} />}
  </Filters>
);

const Targets = ({ targets, query }: TargetsPageProps) => {
  const { url, may } = usePage();
  const isOwner = may("/blocklists/new");
  const back = withParameters(url, {}).split("?")[1] ?? "";
  return (
    <>
      <PostForm action={BULK} id={BULK_FORM} class="bulk">
        <input type="hidden" name="back" value={back} />
        <span class="soft small">With the chosen targets:</span>
        {(
          [
            ["check", "Check now"],
            ["pause", "Pause"],
            ["resume", "Resume"],
            ["delete", "Delete …"],
          ] as const
        ).map(([act, text]) => (
          <Button key={act} name="act" value={act}>
            {text}
          </Button>
        ))}
        <DownloadLink href={`/blocklists/export.csv${back === "" ? "" : `?${back}`}`}>CSV</DownloadLink>
      </PostForm>
      <Table
        caption="Targets, the worst first"
        sort={query.sort}
        columns={[
          { title: "Choose", isTitleHidden: true },
          { title: "State", sort: "worst" },
          { title: "Target", sort: "name", isMain: true },
          { title: "Listed on", isText: true },
          { title: "Label", sort: "label" },
          { title: "Checked", sort: "checked" },
          { title: "Next check", sort: "next" },
        ]}
        rows={targets.map((target) => rowOf(target, isOwner))}
      />
    </>
  );
};

const rowOf = ({ row, listings }: ShownTarget, isOwner: boolean): TableRow => ({
  key: row.id,
  cells: [
    <CheckField key="id" name="ids" value={row.id} label={`Choose ${row.value}`} form={BULK_FORM} isLabelHidden />,
    <StateBadge key="state" target={row} />,
    <TargetName key="name" row={row} />,
    <ListedOn key="listed" listings={listings} />,
    row.label ?? "",
    row.lastCheckedAtMs === null ? <span class="soft">never</span> : <Time atMs={row.lastCheckedAtMs} />,
    row.monitoringEnabled ? <Time atMs={row.nextCheckAtMs} /> : <span class="soft">paused</span>,
  ],
  menu: menuOf(row, isOwner),
});

/** Owners pause and delete, as with the chosen targets. */
const menuOf = ({ id, value, monitoringEnabled }: TargetRow, isOwner: boolean): RowMenuProps => ({
  about: value,
  copy: { text: value, label: "Copy the target" },
  acts: [
    { text: "Check now", icon: "refresh-cw", action: `/blocklists/${id}/check` },
    monitoringEnabled
      ? { text: "Pause", icon: "pause", action: `/blocklists/${id}/monitoring`, field: ["is", "no"] }
      : { text: "Resume", icon: "play", action: `/blocklists/${id}/monitoring`, field: ["is", "yes"] },
    ...(isOwner ? [{ text: "Delete …", icon: "trash-2", action: BULK, field: ["ids", id] } as const] : []),
  ],
});

const TargetName = ({ row: { id, value, members } }: { readonly row: TargetRow }) => (
  <>
    <Link href={`/blocklists/${id}`} class="plain">
      <Mono text={value} />
    </Link>
    {members !== null && <span class="second">{countText(members, "address", "addresses")}</span>}
  </>
);

const ListedOn = ({ listings }: Pick<ShownTarget, "listings">) => {
  if (listings.length === 0) return null;
  const names = [...new Set(listings.map(({ name }) => name))];
  const sinceMs = Math.min(...listings.map(({ since }) => Date.parse(since)));
  const notes = [
    listings.every(({ acknowledged }) => acknowledged !== null) ? "acknowledged" : null,
    listings.some(({ delisting_requested }) => delisting_requested !== null) ? "removal requested" : null,
    ...listings.flatMap(({ note }) => (note === null ? [] : [`“${note.text}”`])).slice(0, 1),
  ].filter((text) => text !== null);
  return (
    <>
      {names.slice(0, NAMES_MAX).join(", ")}
      {names.length > NAMES_MAX && ` and ${names.length - NAMES_MAX} more`}
      <span class="second">
        since <Time atMs={sinceMs} />
        {notes.length > 0 && ` · ${notes.join(" · ")}`}
      </span>
    </>
  );
};

/** The page of an account without targets: what this is for, and the first target. */
const FirstTarget = ({ mode }: { readonly mode: KeyMode }) => (
  <>
    <PageHead title="Blocklists" meta="Nothing is monitored yet." />
    <Columns side={<Discover values={{}} />}>
      <Panel title="Know it before your mail is refused">
        <p>
          Many mail servers refuse or filter mail from addresses and domains that are on a DNS blocklist. Postwarden
          checks yours on each list every six hours, tells you when one is listed, what that means and how it is
          removed.
        </p>
        <PostForm action="/blocklists/new" class="inline-form">
          <Field
            name="targets"
            label="The first domain, address or range"
            placeholder="example.com or 192.0.2.1"
            isMono
            isRequired
          />
          <Button kind="main" icon="plus">
            Monitor it
          </Button>
        </PostForm>
        {mode === "test" && (
          <p class="soft small">
            Test data: <code>listed.example</code> is always listed, <code>refused.example</code> is always unknown, and
            any other name is clean.
          </p>
        )}
        <p>
          <Link href="/blocklists/new">Add many at once</Link>
        </p>
      </Panel>
    </Columns>
  </>
);
