import { CHOOSE_COLUMN } from "../../bulk/reading/columns-address.ts";
import type { Draft, DraftLayout, DraftPreview } from "../../bulk/arrival/drafts.ts";
import type { Preview } from "../../bulk/arrival/preview.ts";
import { CREDITS_PATH, CREDITS_TEXT, GrantCredits } from "../components/credits.tsx";
import { Button, CheckField, Field, GetForm, PostForm, SelectField } from "../components/form.tsx";
import { HelpText, Link } from "../components/inline.tsx";
import { Callout, Columns, PageHead, Panel, Row, Rows } from "../components/panel.tsx";
import { Time, bytesText, countText, Num, numberText } from "../components/figures.tsx";
import { ENCODING_OPTIONS, encodingName, fileText, TEST_NAMES_TEXT } from "./list-facts.tsx";
import { FirstRows, SampleRows } from "./draft-rows.tsx";
import { usePage } from "../visit.ts";

export const START_PATH = "/lists/new";
/** The id of the form that starts the list: its button stands at the top. */
const START_FORM = "start";
export const DISCARD_PATH = "/lists/new/discard";

export interface DraftPageProps {
  readonly draft: Draft;
  readonly layout: DraftLayout;
  readonly read: DraftPreview;
  readonly isTest: boolean;
  /** Credits charged in this month. */
  readonly usedThisMonth: number;
  /** Who can be mailed at the end; null where no mail can be sent. */
  readonly mailTo: string | null;
}

const HEADER_OPTIONS = [
  ["auto", "Find out"],
  ["true", "Yes"],
  ["false", "No"],
] as const;

const NAME_SHOWN = 60;
/** Longer names are no parameter of a URL. */
const NAME_USED = 200;
const nameOf = (name: string | null, at: number): string =>
  name === null || name.trim() === "" ? `Column ${at + 1}` : `${at + 1}: ${name.slice(0, NAME_SHOWN)}`;

/** The columns to choose from. A column is named by its index, or by its name where numbers are names. */
const columnOptions = (columns: ReadonlyArray<string | null>): Array<readonly [value: string, text: string]> => {
  const isNumbered = columns.some((name) => /^\d{1,4}$/.test(name?.trim() ?? ""));
  const isUsable = (name: string | null): name is string => isNumbered && name !== null && name.length <= NAME_USED;
  return columns.map((name, at) => [isUsable(name) ? name : String(at), nameOf(name, at)]);
};

const columnsOf = (read: DraftPreview): ReadonlyArray<string | null> => {
  if (read.kind === "refused") return read.sample?.records[0] ?? [];
  const { columns, first_rows } = read.preview;
  if (columns.length > 0) return columns;
  return Array.from({ length: Math.max(1, ...first_rows.map(({ cells }) => cells.length)) }, () => null);
};

/** A workbook names its encoding itself. */
const isWorkbook = ({ draft, read }: Pick<DraftPageProps, "draft" | "read">): boolean =>
  read.kind === "list" ? read.preview.format?.type === "xlsx" : /\.xlsx$/i.test(draft.fileName ?? "");

/** The sheets of a workbook, and the one that was read. */
const sheetsOf = (read: DraftPreview): { readonly sheet: string | null; readonly sheets: readonly string[] } =>
  read.kind === "refused" ? read : { sheet: read.preview.format?.sheet ?? null, sheets: read.preview.sheets };

const SheetField = ({ layout, read }: Pick<DraftPageProps, "layout" | "read">) => {
  const { sheet, sheets } = sheetsOf(read);
  if (sheets.length < 2) return null;
  return (
    <SelectField
      name="sheet"
      label="Sheet"
      value={layout.sheet ?? sheet ?? ""}
      options={sheets.map((name) => [name, name] as const)}
      isImmediate
    />
  );
};

/** How the file is read: another sheet, in another encoding, another column, with or without a header. */
const LayoutForm = ({ draft, layout, read }: Pick<DraftPageProps, "draft" | "layout" | "read">) => (
  <Panel title="Read it in another way">
    <GetForm action={START_PATH} class="form">
      <input type="hidden" name="draft" value={draft.id} />
      <SheetField {...{ layout, read }} />
      <SelectField
        name="column"
        label="Column of addresses"
        value={layout.column ?? ""}
        options={[["", "Find it"], ...columnOptions(columnsOf(read))]}
        isImmediate
      />
      <SelectField
        name="header"
        label="Does the first row name the columns?"
        value={layout.header}
        options={HEADER_OPTIONS}
        isImmediate
      />
      {!isWorkbook({ draft, read }) && (
        <SelectField
          name="encoding"
          label="Encoding"
          hint="Choose another one if letters look wrong."
          value={layout.encoding ?? ""}
          options={ENCODING_OPTIONS}
          isImmediate
        />
      )}
      <div class="actions">
        <Button>Read again</Button>
      </div>
    </GetForm>
  </Panel>
);

/** What an assumed encoding means for the results. */
const ASSUMED = {
  "utf-8":
    "Some letters are not valid UTF-8 and cannot be kept. If letters look wrong, choose the encoding of the file.",
  other:
    "The file is not Unicode, so letters may look wrong here. Choose its encoding to have the results in UTF-8; otherwise they have your columns unchanged, in the encoding of the file.",
} as const;

const FormatFacts = ({ format }: { readonly format: NonNullable<Preview["format"]> }) => {
  const { type, encoding, encoding_assumed: isAssumed, header, title_rows, column } = format;
  const name = column.name === null || column.name === "" ? "" : ` “${column.name}”`;
  return (
    <>
      <Row label="File">{fileText(format)}</Row>
      {type === "csv" && (
        <Row label="Encoding">
          {encodingName(encoding, isAssumed)}
          {isAssumed && <span class="second soft small">{ASSUMED[encoding === "utf-8" ? "utf-8" : "other"]}</span>}
        </Row>
      )}
      <Row label="Column of addresses">
        {column.index + 1}
        {name}
        <span class="second soft small">{column.message}</span>
      </Row>
      <Row label="Header">
        {header ? "The first row names the columns" : "None: the first row is data"}
        {title_rows > 0 && <span class="second soft small">Below {countText(title_rows, "title row")}</span>}
      </Row>
    </>
  );
};

const Found = ({ preview }: { readonly preview: Preview }) => {
  const { format, rows, addresses } = preview;
  return (
    <Panel title="What was found" isFlush>
      <Rows>
        {format !== null && <FormatFacts format={format} />}
        <Row label="Rows">
          <Num value={rows.total} />
        </Row>
        <Row label="Distinct addresses">
          <Num value={addresses.total} />
        </Row>
        <Row label="Repeated addresses (checked once)">
          <Num value={rows.duplicate} />
        </Row>
        <Row label="Rows without an address (free)">
          <Num value={rows.empty} />
        </Row>
        <Row label="Not an address (invalid syntax)">
          <Num value={rows.invalid_syntax} />
        </Row>
      </Rows>
    </Panel>
  );
};

const StartForm = ({ draft, layout, mailTo }: Pick<DraftPageProps, "draft" | "layout" | "mailTo">) => (
  <PostForm action={START_PATH} class="form" id={START_FORM}>
    <input type="hidden" name="draft" value={draft.id} />
    <input type="hidden" name="column" value={layout.column ?? ""} />
    <input type="hidden" name="header" value={layout.header} />
    <input type="hidden" name="encoding" value={layout.encoding ?? ""} />
    <input type="hidden" name="sheet" value={layout.sheet ?? ""} />
    {mailTo !== null && <CheckField name="mail" label={<>Mail {mailTo} when it is done</>} isChecked />}
    <Field name="name" label="Name" value={draft.fileName} placeholder="Newsletter, spring" />
    <Field name="source" label="Label (optional)" hint="For your own use; the API returns it as source." />
    <Field
      name="webhook_url"
      type="url"
      label="Webhook (optional)"
      hint="Receives one message when the list has ended."
      placeholder="https://example.com/hooks/lists"
    />
  </PostForm>
);

const Discard = ({ draft }: { readonly draft: Draft }) => (
  <PostForm action={DISCARD_PATH}>
    <input type="hidden" name="draft" value={draft.id} />
    <Button icon="trash-2">Discard this upload</Button>
  </PostForm>
);

const startButton = (
  <Button kind="main" icon="play" form={START_FORM}>
    Start verification
  </Button>
);

/** What it costs against what is there, as the first sentence of the page. */
const Cost = ({
  preview,
  isTest,
  usedThisMonth,
}: { readonly preview: Preview } & Pick<DraftPageProps, "isTest" | "usedThisMonth">) => {
  const { required, available } = preview.credits;
  const { may, url } = usePage();
  const count = countText(preview.addresses.total, "address", "addresses");
  if (isTest)
    return (
      <Callout kind="info" label="Test" title={`${count} to verify, free of charge`} actions={startButton}>
        <HelpText text={TEST_NAMES_TEXT} />
      </Callout>
    );
  if (required > available)
    return (
      <Callout
        kind="bad"
        label="Credits"
        title={`Not enough credits: ${numberText(required)} needed, ${numberText(available)} available`}
      >
        {may(CREDITS_PATH)
          ? "You operate this service: grant the account credits, and start the list."
          : "Ask the operator of this service for credits. The upload is kept meanwhile, so this page can be loaded again."}{" "}
        {CREDITS_TEXT}
        <GrantCredits credits={required - available} back={url} />
      </Callout>
    );
  return (
    <Callout
      kind="ok"
      label="Ready"
      title={`${count} to verify, ${countText(required, "credit")}`}
      actions={startButton}
    >
      {countText(available, "credit")} available, {numberText(usedThisMonth)} used this month. {CREDITS_TEXT}
    </Callout>
  );
};

const Readable = ({ preview, ...props }: DraftPageProps & { readonly preview: Preview }) => {
  const { draft, layout, isTest, mailTo, usedThisMonth } = props;
  return (
    <>
      <Cost {...{ preview, isTest, usedThisMonth }} />
      <Columns
        side={
          <>
            <Panel title="Options">
              <StartForm {...{ draft, layout, mailTo }} />
            </Panel>
            <LayoutForm {...props} />
            <Discard draft={draft} />
          </>
        }
      >
        <Found preview={preview} />
        <FirstRows preview={preview} />
      </Columns>
    </>
  );
};

const Refused = (props: DraftPageProps & { readonly read: Extract<DraftPreview, { kind: "refused" }> }) => {
  const { draft, read } = props;
  const { message, issues, sample, sheet, sheets } = read;
  const canChoose = sample !== null || sheets.length > 1;
  return (
    <>
      <Callout kind="bad" label="Not a list" title="This file cannot be verified as it is">
        <p>{message.split(CHOOSE_COLUMN)[0]}</p>
        {issues.length > 0 && (
          <ul>
            {issues.map(({ path, message: problem }) => (
              <li key={path}>
                {path}: {problem}
              </li>
            ))}
          </ul>
        )}
        <p>
          {canChoose && `Choose the ${sheets.length > 1 ? "sheet or the " : ""}column of addresses, or `}
          <Link href="/lists">{canChoose ? "upload" : "Upload"} another file</Link>.
        </p>
      </Callout>
      {canChoose && (
        <Columns side={<LayoutForm {...props} />}>{sample !== null && <SampleRows {...{ sample, sheet }} />}</Columns>
      )}
      <Discard draft={draft} />
    </>
  );
};

/** `/lists/new?draft=…`: what an uploaded file holds and costs, before it is started. */
export const DraftPage = (props: DraftPageProps) => {
  const { draft, read } = props;
  return (
    <>
      <PageHead
        title={draft.fileName ?? "Pasted addresses"}
        crumbs={[["Lists", "/lists"]]}
        meta={
          <>
            <span>{bytesText(draft.bytes)}</span>
            <span>
              not started, kept until <Time atMs={draft.expiresAtMs} style="clock" /> or until a restart of the service
            </span>
          </>
        }
      />
      {read.kind === "list" ? <Readable {...props} preview={read.preview} /> : <Refused {...props} read={read} />}
    </>
  );
};
