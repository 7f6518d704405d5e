import type { ComponentChildren } from "preact";
import { type RecordPage, isRecordCursor, recordDay, type ShownRecord } from "../../dmarc/insight/queries/records.ts";
import { reporterWords } from "../../dmarc/insight/queries/reporter.ts";
import type { SenderAddress } from "../../dmarc/insight/sources/domain-sources.ts";
import type { Source } from "../../dmarc/insight/sources/source-response.ts";
import { isoDay } from "../../foundation/base/days.ts";
import { sumBy } from "../../foundation/base/sums.ts";
import { encodeCursor, decodeCursor } from "../../foundation/http/route-input.ts";
import { Badge, DownloadLink, type Kind, Link } from "../components/inline.tsx";
import { Copyable } from "../components/copy.tsx";
import { Button, Field, Filters, PostForm, SelectField } from "../components/form.tsx";
import { countText, Day, numberText, Percent } from "../components/figures.tsx";
import { Panel } from "../components/panel.tsx";
import { Pager, rowsParameter } from "../components/pager.tsx";
import { type Column, Table } from "../components/table.tsx";
import { sourceHref } from "./source-classes.tsx";
import { z } from "zod";
import { readSourceIp } from "../../dmarc/reports/report/report-values.ts";
import { rangeParameter } from "./domain-head.tsx";
import type { WatchedAddress } from "./use-cases.ts";

const ADDRESSES_SHOWN = 12;

/** The addresses of a source with their reverse names and networks. */
export const SenderAddresses = ({
  addresses,
  count,
  targetOf,
  children,
}: {
  readonly addresses: readonly SenderAddress[];
  readonly count: number;
  /** The blocklist target of an address. */
  readonly targetOf: (ip: string) => WatchedAddress | undefined;
  readonly children: ComponentChildren;
}) => (
  <Panel
    title="Addresses"
    aside={count > ADDRESSES_SHOWN ? `${ADDRESSES_SHOWN} of ${numberText(count)}, the most messages first` : undefined}
    isFlush
  >
    <Table
      caption="Addresses"
      columns={[
        { title: "Address", isMain: true },
        { title: "Messages", align: "end" },
        { title: "Aligned", align: "end" },
        { title: "Last day" },
        { title: "Blocklists" },
      ]}
      rows={addresses.slice(0, ADDRESSES_SHOWN).map((sender) => ({
        key: sender.address.ip,
        cells: [
          <>
            <Copyable text={sender.address.ip} />
            <span class="second">{nameWords(sender)}</span>
            <span class="second">{networkWords(sender)}</span>
          </>,
          numberText(sender.messages),
          <Percent part={sender.aligned} whole={sender.messages} />,
          <Day day={isoDay(sender.lastDay)} />,
          <ListingState target={targetOf(sender.address.ip)} />,
        ],
      }))}
    />
    {children}
  </Panel>
);

const LISTING_WORDS: Readonly<Record<WatchedAddress["status"], readonly [kind: Kind, text: string]>> = {
  listed: ["bad", "Listed"],
  clean: ["ok", "Not listed"],
  unknown: ["unknown", "Not known"],
  pending: ["unknown", "Not checked yet"],
};

const ListingState = ({ target }: { readonly target: WatchedAddress | undefined }) => {
  if (target === undefined) return <span class="soft">not monitored</span>;
  const [kind, text] = LISTING_WORDS[target.status];
  return (
    <Link href={`/blocklists/${target.id}`}>
      <Badge kind={kind}>{target.status === "listed" ? `Listed on ${target.listedOn.length}` : text}</Badge>
    </Link>
  );
};

/** Leads to the addresses of own servers as blocklist targets, to be chosen. */
export const BlocklistForm = ({ domain }: { readonly domain: string }) => (
  <PostForm action="/blocklists/discover">
    <input type="hidden" name="dmarc_domain" value={domain} />
    <Button title="Find the addresses of own servers, and choose which of them to monitor">
      Monitor on blocklists
    </Button>
  </PostForm>
);

const nameWords = ({ address: { name, isConfirmed, isAsked } }: SenderAddress): string => {
  if (!isAsked) return "reverse name not looked up yet";
  if (name === null) return "no reverse name";
  return isConfirmed ? name : `${name} (does not resolve back)`;
};

const networkWords = ({ address: { asn, asName, country } }: SenderAddress): string =>
  asn === null ? "network unknown" : [`AS${asn}`, asName, country].filter((text) => text !== null).join(" · ");

const RECORD_COLUMNS: readonly Column[] = [
  { title: "Reporter" },
  { title: "Address" },
  { title: "Messages", align: "end" },
  { title: "Result" },
  { title: "DKIM · SPF" },
  { title: "Domain in From" },
];

interface SourceRecordsProps {
  readonly domainId: string;
  readonly source: Source;
  readonly rows: RecordPage;
  readonly state: SourceState;
}

/** The rows of reports that name a source, folded by day, failing ones of a day first. */
export const SourceRecords = ({ domainId, source, rows, state }: SourceRecordsProps) => {
  const cursors = [state.cursor, rows.next].filter((cursor) => typeof cursor === "string");
  return (
    <Panel title="Rows of reports" isFlush>
      <Filters action={sourceHref(domainId, source.key)}>
        <input type="hidden" name="days" value={state.days} />
        <SelectField
          name="aligned"
          label="Result"
          value={state.aligned ?? ""}
          options={[
            ["", "All"],
            ["no", "Failing DMARC"],
            ["yes", "Passing DMARC"],
          ]}
        />
        <Field name="ip" label="Address" type="search" value={state.ip ?? ""} />
      </Filters>
      {rows.records.length === 0 ? (
        <p class="panel-body soft">
          {rows.next === null ? "No row matches." : "No row here matches. Later pages may have some."}
        </p>
      ) : (
        [...Map.groupBy(rows.records, ({ date }) => date)].map(([day, records]) => (
          <DayOfRecords
            key={day}
            {...{ day, records, domainId }}
            isPart={cursors.some((at) => recordDay(at) === day)}
          />
        ))
      )}
      <Pager next={rows.next === null ? null : encodeCursor(rows.next)} shown={rows.records.length} rows={state.rows}>
        <DownloadLink href={`${sourceHref(domainId, source.key)}/records.csv?${recordParameters(state)}`}>
          CSV
        </DownloadLink>
      </Pager>
    </Panel>
  );
};

const recordParameters = ({ days, aligned, ip }: SourceState) =>
  new URLSearchParams({
    days: String(days),
    ...(aligned === undefined ? {} : { aligned }),
    ...(ip === undefined ? {} : { ip }),
  });

interface DayOfRecordsProps {
  /** `YYYY-MM-DD`. */
  readonly day: string;
  /** The rows of the day that are on the page. */
  readonly records: readonly ShownRecord[];
  /** Other pages may have more of the day. */
  readonly isPart: boolean;
  readonly domainId: string;
}

const DayOfRecords = ({ day, records, isPart, domainId }: DayOfRecordsProps) => {
  const messages = sumBy(records, ({ count }) => count);
  const failing = sumBy(records, ({ aligned, forwarded, count }) => (aligned || forwarded ? 0 : count));
  return (
    <details class="fold">
      <summary>
        <b>
          <Day day={day} />
        </b>{" "}
        {countText(records.length, "row")}
        {isPart && " on this page"}, {countText(messages, "message")}{" "}
        {failing > 0 && <Badge kind="bad">{numberText(failing)} failed</Badge>}
      </summary>
      <Table
        caption={`Rows of ${day}`}
        columns={RECORD_COLUMNS}
        rows={records.map((record, at) => ({ key: at, cells: recordCells(domainId, record) }))}
      />
    </details>
  );
};

const recordCells = (domainId: string, record: ShownRecord) => [
  <Link href={`/dmarc/${domainId}/reports/${record.report.id}`}>{reporterWords(record.report.reporter)}</Link>,
  <>
    <span class={record.source_ip.includes(":") ? "mono" : "mono nowrap"}>{record.source_ip}</span>
    {record.reverse_name !== null && <span class="second">{record.reverse_name}</span>}
  </>,
  numberText(record.count),
  <>
    <Badge kind={record.aligned ? "ok" : record.forwarded ? "unknown" : "bad"}>
      {record.aligned ? "Aligned" : record.forwarded ? "Forwarded" : "Failed"}
    </Badge>
    {record.disposition !== null && record.disposition !== "none" && (
      <span class="second">{record.disposition === "reject" ? "rejected" : "quarantined"}</span>
    )}
    {record.reasons.length > 0 && <span class="second">{record.reasons.map(({ type }) => type).join(", ")}</span>}
  </>,
  <>
    <Results
      what="DKIM"
      results={record.dkim_results.map(({ domain, selector, result }) => ({
        result,
        of: selector === null ? domain : `${domain ?? ""} (${selector})`,
      }))}
    />
    <Results what="SPF" results={record.spf_results.map(({ domain, result }) => ({ result, of: domain }))} />
  </>,
  record.header_from === null ? <span class="soft">not reported</span> : <span class="mono">{record.header_from}</span>,
];

const Results = ({
  what,
  results,
}: {
  readonly what: string;
  readonly results: ReadonlyArray<{ readonly result: string; readonly of: string | null }>;
}) => (
  <span class="auth-results">
    {results.length === 0
      ? `${what} none`
      : results.map(({ result, of }) => `${what} ${result}${of === null ? "" : ` ${of}`}`).join("; ")}
  </span>
);

export const sourceQuery = z.object({
  days: rangeParameter,
  aligned: z.enum(["yes", "no"]).optional(),
  ip: z
    .string()
    .trim()
    .transform((text) => {
      const read = readSourceIp(text);
      return typeof read === "string" ? "" : read.ip;
    })
    .refine((text) => text !== "")
    .optional(),
  cursor: z.string().transform(decodeCursor).refine(isRecordCursor).optional(),
  rows: rowsParameter,
});
export type SourceState = z.output<typeof sourceQuery>;
