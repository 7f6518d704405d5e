import { Button, UploadForm, PostForm } from "../components/form.tsx";
import { Panel, Empty, Callout, PageHead, Row, Rows, Live } from "../components/panel.tsx";
import { decidingFinding, type IngestionView } from "../../dmarc/reports/ingest/ingestion-schemas.ts";
import { middleCut, Mono } from "../components/copy.tsx";
import { Icon } from "../components/icon.tsx";
import { DownloadLink, Link, Badge } from "../components/inline.tsx";
import { Table, type TableRow } from "../components/table.tsx";
import { usePage } from "../visit.ts";
import { Time, bytesText } from "../components/figures.tsx";
import { findingText, isAcceptable, isRetriable, outcomeWords, viaWord } from "./report-words.ts";

const ACCEPTED = ".xml,.gz,.zip,.eml,.json,.msg,.tgz,application/gzip,application/zip,application/xml,message/rfc822";

const UPLOAD_PATH = "/dmarc/intake";

/** Files with reports, dropped or chosen: they are read at once, and the next page says what became of each. */
export const ReportUpload = () =>
  !usePage().may(UPLOAD_PATH) ? null : (
    <Panel title="Import reports">
      <UploadForm action={UPLOAD_PATH} class="upload">
        <div class="drop" data-drop="submit">
          <Icon name="upload" />
          <p>
            <label for="report-files">
              <b>Drop reports here</b>, or choose files
            </label>
          </p>
          <input id="report-files" type="file" name="file" multiple accept={ACCEPTED} required />
          <p class="soft small" data-files />
          <Button kind="main">Import</Button>
          <p class="soft small">
            Aggregate and TLS reports: mails (.eml), XML, JSON, gzip and zip, several at once, up to 64 MiB. The format
            is detected from the content. Reports that are stored already are recognized.
          </p>
        </div>
      </UploadForm>
    </Panel>
  );

interface TableProps {
  readonly ingestions: readonly IngestionView[];
  readonly isFiltered: boolean;
}

/** Received reports, each with its outcome. */
export const IngestionTable = ({ ingestions, isFiltered }: TableProps) => {
  if (ingestions.length === 0) return <NothingCame isFiltered={isFiltered} />;
  return (
    <Table
      caption="Received mails and files, newest first"
      columns={[
        { title: "What", isMain: true },
        { title: "Outcome" },
        { title: "Why", isText: true },
        { title: "Act", isTitleHidden: true },
      ]}
      rows={ingestions.map(ingestionRow)}
    />
  );
};

const NothingCame = ({ isFiltered }: { readonly isFiltered: boolean }) =>
  isFiltered ? (
    <Empty title="Nothing matches">
      <p>Choose other filters.</p>
    </Empty>
  ) : (
    <Empty title="Nothing received yet">
      <p>Every mail to a reporting address and every imported file is listed here, with what became of it and why.</p>
    </Empty>
  );

const NAME_CHARACTERS_MAX = 56;

/** The file, or the sender of the mail. */
const nameOf = ({ name, mail_from, via }: IngestionView): string => {
  if (name !== null && name !== "") return middleCut(name, NAME_CHARACTERS_MAX);
  if (mail_from !== null && mail_from !== "") return `Mail from ${middleCut(mail_from, NAME_CHARACTERS_MAX)}`;
  return via === "smtp" || via === "imap" ? "Mail" : "File without a name";
};

/** What the findings are about: the domain and the reporter. */
const subjectOf = ({ findings }: IngestionView): string | null => {
  const [first] = findings;
  if (first === undefined) return null;
  const more = findings.length > 1 ? `, and ${findings.length - 1} more` : "";
  const text = [first.org_name, first.domain].filter((part) => part !== null && part !== "").join(" about ");
  return text === "" ? null : `${text}${more}`;
};

const ingestionRow = (ingestion: IngestionView): TableRow => {
  const [kind, word] = outcomeWords(ingestion.outcome);
  const deciding = decidingFinding(ingestion);
  const subject = subjectOf(ingestion);
  const why = deciding === undefined ? "It will be read within a minute." : findingText(deciding.message);
  return {
    key: ingestion.id,
    cells: [
      <>
        <Link href={`/dmarc/intake/${ingestion.id}`}>{nameOf(ingestion)}</Link>
        {subject !== null && <span class="second">{subject}</span>}
        <span class="second">
          {viaWord(ingestion.via)}, <Time atMs={Date.parse(ingestion.received_at)} />
        </span>
      </>,
      <Badge kind={kind}>{word}</Badge>,
      <span class="small">{why}</span>,
      isRetriable(ingestion) ? <RetryForm id={ingestion.id} /> : null,
    ],
  };
};

const RetryForm = ({ id }: { readonly id: string }) => (
  <PostForm action={`/dmarc/intake/${id}/retry`}>
    <Button icon="refresh-cw">Retry</Button>
  </PostForm>
);

const AcceptForm = ({ id }: { readonly id: string }) => (
  <PostForm action={`/dmarc/intake/${id}/retry`}>
    <Button
      kind="danger"
      name="accept"
      value="yes"
      title="Its reports count as if you had uploaded them. This cannot be undone."
    >
      It is genuine, accept it
    </Button>
  </PostForm>
);

/** One mail or file with all that was found in it. */
export const IngestionFindings = ({ ingestion }: { readonly ingestion: IngestionView }) => {
  const [kind, word] = outcomeWords(ingestion.outcome);
  const { id, findings, raw_available: isKept } = ingestion;
  const deciding = decidingFinding(ingestion);
  return (
    <Live id="ingestion" everyS={2} isOn={ingestion.status === "pending"}>
      <PageHead
        title={nameOf(ingestion)}
        crumbs={[
          ["DMARC", "/dmarc"],
          ["Received reports", "/dmarc/intake"],
        ]}
        meta={
          <span>
            {viaWord(ingestion.via)}, received <Time atMs={Date.parse(ingestion.received_at)} style="full" />
          </span>
        }
        actions={
          <>
            {isRetriable(ingestion) && <RetryForm id={id} />}
            {isKept && <DownloadLink href={`/dmarc/intake/${id}/raw`}>Original bytes</DownloadLink>}
          </>
        }
      />
      <Callout
        kind={kind}
        label={word}
        title={deciding === undefined ? "It will be read within a minute" : findingText(deciding.message)}
        actions={isAcceptable(ingestion) ? <AcceptForm id={id} /> : undefined}
      >
        {isAcceptable(ingestion) ? (
          <p>Accepting counts its reports as if you had uploaded them. Acceptance cannot be undone.</p>
        ) : ingestion.accepted_at !== null ? (
          <p>
            Accepted <Time atMs={Date.parse(ingestion.accepted_at)} style="full" />.
          </p>
        ) : undefined}
      </Callout>
      <Panel title="What was found in it" isFlush>
        {findings.length === 0 ? <p class="panel-body soft">Nothing yet.</p> : <FindingTable findings={findings} />}
      </Panel>
      <Arrival ingestion={ingestion} />
    </Live>
  );
};

const Arrival = ({ ingestion }: { readonly ingestion: IngestionView }) => (
  <Panel title="How it arrived" isFlush>
    <Rows>
      <Row label="Size">{bytesText(ingestion.bytes)}</Row>
      {ingestion.client !== null && (
        <Row label="Delivered by">
          <span class="mono">{ingestion.client}</span>
        </Row>
      )}
      {ingestion.mail_from !== null && (
        <Row label="Envelope sender">
          <Mono text={ingestion.mail_from === "" ? "<>" : ingestion.mail_from} />
        </Row>
      )}
      {ingestion.name !== null && (
        <Row label="File name">
          <Mono text={ingestion.name} />
        </Row>
      )}
      <Row label="Original bytes">{ingestion.raw_available ? "kept" : "no longer kept"}</Row>
    </Rows>
  </Panel>
);

const FindingTable = ({ findings }: Pick<IngestionView, "findings">) => (
  <Table
    caption="What was found"
    columns={[{ title: "Part" }, { title: "Outcome" }, { title: "About" }, { title: "Why" }]}
    rows={findings.map((finding, at) => {
      const [kind, word] = outcomeWords(finding.outcome);
      const { domain_id, report_id, domain } = finding;
      const about = domain ?? "–";
      const isReport = report_id !== null && domain_id !== null && finding.reason !== "tls_report";
      return {
        key: at,
        cells: [
          finding.name === null ? <span class="soft">the whole</span> : <Mono text={finding.name} />,
          <Badge kind={kind}>{word}</Badge>,
          <>
            {isReport ? (
              <Link href={`/dmarc/${domain_id}/reports/${report_id}`}>{about}</Link>
            ) : domain_id !== null ? (
              <Link href={`/dmarc/${domain_id}`}>{about}</Link>
            ) : (
              about
            )}
            {finding.org_name !== null && <span class="second">by {finding.org_name}</span>}
          </>,
          <span class="small">{findingText(finding.message)}</span>,
        ],
      };
    })}
  />
);
