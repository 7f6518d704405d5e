import { DownloadLink, Link } from "../components/link.tsx";
import { countText, Num } from "../components/number.tsx";
import { Panel, Row, Rows } from "../components/panel.tsx";
import { wordsOfReason } from "../verdict-words.ts";
import { encodingName, separatorName } from "./list-words.ts";
import { isOpenList, type AddressListPageProps } from "./list-page-props.ts";

/** Downloads, by what they hold; `show` as in the filter of rows. */
const DOWNLOADS = [
  ["deliverable", "Deliverable"],
  ["risky", "Risky"],
  ["undeliverable", "Undeliverable"],
  ["unsettled", "Unsettled"],
] as const;

/** The reasons of the results, each with its rows. */
export const ReasonsPanel = ({ job, reasons }: AddressListPageProps) => (
  <Panel title="Why" isFlush>
    {reasons.length === 0 ? (
      <p class="panel-body soft">Nothing is finished yet.</p>
    ) : (
      <Rows>
        {reasons.map(({ subStatus, rows }) => (
          <Row
            key={subStatus}
            label={
              <Link href={`/lists/${job.id}?reason=${subStatus}`} title={wordsOfReason(subStatus).sentence}>
                {wordsOfReason(subStatus).label}
              </Link>
            }
          >
            <Num value={rows} />
          </Row>
        ))}
      </Rows>
    )}
  </Panel>
);

/** The results as files. */
export const Downloads = ({ job, verdicts, unsettledRows }: AddressListPageProps) => {
  const counts = { ...verdicts, unsettled: unsettledRows };
  return (
    <Panel title={isOpenList({ job }) ? "Results so far" : "Downloads"} isFlush>
      <ul class="plain-list">
        <li>
          <DownloadLink href={`/lists/${job.id}/results.csv`}>All rows</DownloadLink> <Num value={job.rowsTotal} />
        </li>
        {DOWNLOADS.map(([show, label]) => (
          <li key={show}>
            <DownloadLink href={`/lists/${job.id}/results.csv?show=${show}`}>{label}</DownloadLink>{" "}
            <Num value={counts[show]} />
          </li>
        ))}
      </ul>
      <p class="panel-body soft small">
        Your columns with the results beside them. Unsettled: no mail server gave a usable answer, so it may be
        different another day.
      </p>
    </Panel>
  );
};

/** How the list was read and what it cost. */
export const AboutList = ({ job, format, credits, isTest }: AddressListPageProps) => (
  <Panel title="About this list" isFlush>
    <Rows>
      <Row label="Rows">
        <Num value={job.rowsTotal} />
      </Row>
      <Row label="Distinct addresses">
        <Num value={job.addressesTotal} />
      </Row>
      {job.rowsEmpty > 0 && (
        <Row label="Rows without an address">
          <Num value={job.rowsEmpty} />
        </Row>
      )}
      {format !== null && (
        <Row label="File">{format.type === "xlsx" ? "Excel workbook" : `CSV, ${separatorName(format.delimiter)}`}</Row>
      )}
      {format !== null && format.type === "csv" && (
        <Row label="Encoding">{encodingName(format.encoding, format.encoding_assumed)}</Row>
      )}
      {format !== null && (
        <Row label="Column of addresses">
          {format.column.index + 1}
          {format.column.name !== null && ` “${format.column.name}”`}
        </Row>
      )}
      {!isTest && (
        <Row label="Credits charged">
          <Num value={credits.charged} />
        </Row>
      )}
      {!isTest && credits.released > 0 && (
        <Row label="Credits released">
          <Num value={credits.released} />
        </Row>
      )}
      {job.round > 0 && <Row label="Verified again">{countText(job.round, "time")}</Row>}
      {job.webhookUrl !== null && (
        <Row label="Webhook">
          <span class="mono">{job.webhookUrl}</span>
        </Row>
      )}
    </Rows>
  </Panel>
);
