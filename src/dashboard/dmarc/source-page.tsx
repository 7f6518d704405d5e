import type { ComponentChildren } from "preact";
import { z } from "zod";
import type { DomainRow } from "../../dmarc/records/domains/domain-store.ts";
import type { SourcePage } from "../../dmarc/alerts/overview/dmarc-reading.ts";
import type { RecordPage } from "../../dmarc/insight/queries/records.ts";
import type { Source } from "../../dmarc/insight/sources/source-response.ts";
import { BarChart } from "../components/chart.tsx";
import { ButtonLink, DownloadLink, OutsideLink, HelpText } from "../components/inline.tsx";
import { Day, countText, numberText, Percent, Time } from "../components/figures.tsx";
import { Callout, Columns, Panel } from "../components/panel.tsx";
import { page, type PageRoute } from "../page.ts";
import { BulkSender } from "./bulk-sender.tsx";
import { ClassBadge, ClassNoteForm, ruleWords } from "./source-classes.tsx";
import { CLASS_WORDS, failureWords, kindWords, REASONS } from "./dmarc-words.ts";
import { DomainHead, RangeLinks, rangeParameter } from "./domain-head.tsx";
import { BlocklistForm, SenderAddresses, SourceRecords, sourceQuery, type SourceState } from "./source-details.tsx";
import type { DmarcPageUseCases, WatchedAddress } from "./use-cases.ts";

const params = z.object({ id: z.string(), key: z.string() });
const addressQuery = z.object({ days: rangeParameter, failing: z.literal("yes").optional() });

/** A source: its identity and evidence, what fails and how to fix it, and the rows of its reports. */
export const sourcePages = ({
  reading,
  records,
  findTarget,
  sourceAddresses,
}: DmarcPageUseCases): readonly PageRoute[] => [
  page(
    { path: "/dmarc/:id/sources/:key", params, query: sourceQuery },
    async ({ viewer, params: { id, key }, query: state }) => {
      const found = await reading.source(viewer.caller, id, { key, days: state.days });
      const rows = await records.pageOfSource(
        found,
        { range: reading.range(state.days), filters: recordFilters(state) },
        { after: state.cursor ?? null, limit: state.rows },
      );
      const { source, row } = found;
      return {
        title: `${source.name}, ${row.domain}`,
        section: "dmarc",
        body: <SourceBody {...{ found, rows, state, targetOf: (ip) => findTarget(viewer.caller, ip) }} />,
      };
    },
  ),
  page(
    { path: "/dmarc/:id/sources/:key/records.csv", params, query: sourceQuery },
    ({ request, viewer, params: { id, key }, query: state }) => {
      const { fromDay: from, toDay: to } = reading.range(state.days);
      const filters = { from, to, source: key, ...recordFilters(state) };
      return records.file(viewer.caller, id, request, { filters, after: null });
    },
  ),
  page(
    { path: "/dmarc/:id/sources/:key/addresses.csv", params, query: addressQuery },
    async ({ request, viewer, params: { id, key }, query: { days, failing } }) => {
      const { fromDay: from, toDay: to } = reading.range(days);
      const wanted = { from, to, failing: failing === "yes" };
      return sourceAddresses.csv(request, await sourceAddresses.list(viewer.caller, id, key, wanted));
    },
  ),
];

/** Which rows of reports are wanted. */
const recordFilters = ({ ip, aligned }: Pick<SourceState, "ip" | "aligned">) => ({
  source_ip: ip,
  aligned: aligned === undefined ? undefined : aligned === "yes",
});

type Found = SourcePage & { readonly row: DomainRow };

const SourceBody = ({
  found,
  rows,
  state,
  targetOf,
}: {
  readonly found: Found;
  readonly rows: RecordPage;
  readonly state: SourceState;
  readonly targetOf: (ip: string) => WatchedAddress | undefined;
}) => {
  const { source, row, addresses, word } = found;
  const { id } = row;
  return (
    <>
      <DomainHead
        domain={row}
        current="sources"
        title={source.name}
        more={[["Sources", `/dmarc/${id}/sources`]]}
        meta={
          <>
            <ClassBadge classification={source.classification} />
            <span>{countText(source.messages, "message")}</span>
            <span>
              <Percent part={source.aligned} whole={source.messages} /> aligned
            </span>
            <span>
              seen from <Day day={source.first_day} /> to <Day day={source.last_day} />
            </span>
          </>
        }
        actions={
          <>
            {source.kind === "own" && <OwnServerActions {...{ row, source, days: state.days }} />}
            <RangeLinks days={state.days} />
          </>
        }
      />
      <Conclusion {...found} />
      <Columns
        side={
          <>
            <Evidence {...found} />
            <Panel title="Classify">
              <ClassNoteForm domainId={id} source={source} note={word?.note ?? null} />
            </Panel>
            {source.aligned > 0 && <BulkSender row={row} sourceKey={source.key} />}
          </>
        }
      >
        <SourceChart {...found} />
        <SenderAddresses addresses={addresses} count={source.address_count} targetOf={targetOf}>
          <AddressFiles {...{ id, source, days: state.days }} />
        </SenderAddresses>
      </Columns>
      <SourceRecords {...{ domainId: id, source, rows, state }} />
    </>
  );
};

/** The addresses of the source as CSV: those that fail, if there are any, and all of them. */
const AddressFiles = ({ id, source, days }: Pick<Found, "source"> & { readonly id: string; readonly days: number }) => {
  const file = `/dmarc/${id}/sources/${encodeURIComponent(source.key)}/addresses.csv?days=${days}`;
  return (
    <p class="panel-body actions">
      {source.failing > source.forwarded && (
        <DownloadLink href={`${file}&failing=yes`}>CSV of failing addresses</DownloadLink>
      )}
      <DownloadLink href={file}>CSV of {countText(source.address_count, "address", "addresses")}</DownloadLink>
    </p>
  );
};

interface OwnServerProps extends Pick<Found, "row" | "source"> {
  readonly days: number;
}

const OwnServerActions = ({ row, source, days }: OwnServerProps) => (
  <>
    <BlocklistForm domain={row.domain} />
    <ButtonLink href={`/dmarc/${row.id}/own-hosts?days=${days}${source.failing > 0 ? "&result=failing" : ""}`}>
      Servers one by one
    </ButtonLink>
  </>
);

/** Splits a sentence at its https addresses, so that they can be followed. */
const Linked = ({ text }: { readonly text: string }) => (
  <>
    {text.split(/(https:\/\/[^\s()]+[^\s().,;:])/).map((part, at) =>
      part.startsWith("https://") ? (
        <OutsideLink key={at} href={part}>
          {part}
        </OutsideLink>
      ) : (
        <HelpText key={at} text={part} />
      ),
    )}
  </>
);

const Conclusion = ({ source, fix, results }: Found) => {
  const { kind, meaning } = CLASS_WORDS[source.classification];
  if (fix === null)
    return (
      <Callout kind={kind} title={meaning}>
        <p>Its mail: {failureWords(source)}.</p>
      </Callout>
    );
  return (
    <Callout kind={kind} title={<HelpText text={fix.why} />}>
      {(results === null || !fix.why.includes(results)) && <p>What fails: {results ?? failureWords(source)}.</p>}
      {fix.steps.length > 0 && (
        <ol class="plain-steps">
          {fix.steps.map((step) => (
            <li key={step}>
              <Linked text={step} />
            </li>
          ))}
        </ol>
      )}
    </Callout>
  );
};

const SourceChart = ({ source, days, row }: Found) => {
  const known = (count: (day: SourcePage["days"][number]) => number) =>
    days.map((day) => (day.isReported ? count(day) : null));
  return (
    <Panel title="Messages a day" aside={countText(source.messages, "message")}>
      {source.messages === 0 ? (
        <p class="soft">
          No reports in this range. Last seen <Day day={source.last_day} />.
        </p>
      ) : (
        <BarChart
          caption={`Messages a day from ${source.name} in the name of ${row.domain}`}
          unit="messages"
          days={days.map(({ day }) => day)}
          series={[
            { title: "Aligned", kind: "ok", values: known(({ aligned }) => aligned) },
            { title: "Failing", kind: "bad", values: known(({ failing }) => failing) },
            ...(source.forwarded > 0
              ? [{ title: "Failing, forwarded", kind: "unknown" as const, values: known(({ forwarded }) => forwarded) }]
              : []),
          ]}
        />
      )}
    </Panel>
  );
};

/** The identity of a source and what its class rests on. */
const Evidence = ({ source, service, reason, rule, word }: Found) => (
  <Panel title="Identity and evidence">
    <dl class="evidence">
      <Fact label="Identity">{kindWords(source)}</Fact>
      {service !== null && (
        <Fact label="Service">
          {service.name}: {service.purpose}
        </Fact>
      )}
      <Fact label="Class">
        {source.classified_by === "user" ? "As you classified it." : REASONS[reason]}
        {source.classified_by === "user" && word === null && rule !== null && ` By your rule: ${ruleWords(rule)}.`}
        {word !== null && <WordNote atMs={word.atMs} note={word.note} />}
      </Fact>
      {source.classified_by === "user" && <Fact label="Without your class">{REASONS[reason]}</Fact>}
      <Fact label="DKIM passes for">
        <Names
          names={source.dkim.map(({ domain, selector, aligned }) => ({
            text: selector === null ? domain : `${domain} (selector ${selector})`,
            isAligned: aligned,
          }))}
        />
      </Fact>
      <Fact label="SPF passes for">
        <Names names={source.spf.map(({ domain }) => ({ text: domain, isAligned: null }))} />
      </Fact>
      <Fact label="Where it sends from">
        {countText(source.address_count, "address", "addresses")} in {countText(source.network_count, "network")}
      </Fact>
      <Fact label="What receivers did">{dispositionWords(source)}</Fact>
    </dl>
  </Panel>
);

const Fact = ({ label, children }: { readonly label: string; readonly children: ComponentChildren }) => (
  <div>
    <dt>{label}</dt>
    <dd>{children}</dd>
  </div>
);

const WordNote = ({ atMs, note }: { readonly atMs: number; readonly note: string | null }) => (
  <span class="soft small">
    {" "}
    <Time atMs={atMs} style="day" />
    {note === null ? "" : `: ${note}`}
  </span>
);

const dispositionWords = ({ messages, quarantined, rejected }: Source): string => {
  const delivered = messages - quarantined - rejected;
  const parts = [
    [delivered, "delivered"],
    [quarantined, "quarantined"],
    [rejected, "rejected"],
  ] as const;
  const told = parts.filter(([count]) => count > 0).map(([count, what]) => `${numberText(count)} ${what}`);
  return told.length === 0 ? "nothing in this range" : told.join(", ");
};

const Names = ({
  names,
}: {
  readonly names: ReadonlyArray<{ readonly text: string; readonly isAligned: boolean | null }>;
}) =>
  names.length === 0 ? (
    <span class="soft">nothing</span>
  ) : (
    <ul>
      {names.map(({ text, isAligned }) => (
        <li key={text}>
          <span class="mono">{text}</span>
          {isAligned !== null && <span class="soft"> {isAligned ? "aligned" : "not aligned"}</span>}
        </li>
      ))}
    </ul>
  );
