import { middleCut } from "../components/copy.tsx";
import { Link, Badge } from "../components/inline.tsx";
import { countText, numberText, Percent } from "../components/figures.tsx";
import { type Column, Table, type TableRow } from "../components/table.tsx";
import { CLASS_WORDS, failureWords } from "./dmarc-words.ts";
import { Button, CheckField, Field, PostForm, SelectField } from "../components/form.tsx";
import { usePage, type Viewer, isOwnPath, redirectToPath } from "../visit.ts";
import { type Classification, CLASSIFICATIONS } from "../../dmarc/insight/sources/rollup-store.ts";
import type { Source } from "../../dmarc/insight/sources/source-response.ts";
import { z } from "zod";
import { isSourceKey } from "../../dmarc/insight/sources/source-identity.ts";
import { formAction, type PageRoute, listOf, optionalText } from "../page.ts";
import type { DmarcPageUseCases } from "./use-cases.ts";
import { SOURCE_RULES_MAX, type SourceRule } from "../../dmarc/records/domains/source-rules.ts";
import { Panel } from "../components/panel.tsx";

/** A rule in words: what an address must be for it to match. */
export const ruleWords = ({ reverse_name: name, network, asn, country, authenticated }: SourceRule): string =>
  [
    name === undefined
      ? ""
      : name === "none"
        ? "no reverse name"
        : name === "generic"
          ? "a generic reverse name"
          : `reverse name in ${name}`,
    network === undefined ? "" : `address in ${network}`,
    asn === undefined ? "" : `AS${asn}`,
    country === undefined ? "" : `registered in ${country}`,
    authenticated === undefined ? "" : authenticated ? "SPF or DKIM passes" : "SPF and DKIM fail",
  ]
    .filter((text) => text !== "")
    .join(", ");

/** The user's rules about sources, in the order in which they are tried. */
export const SourceRules = ({ id, rules }: { readonly id: string; readonly rules: readonly SourceRule[] }) => {
  const isWrong = usePage().form?.action === `/dmarc/${id}/rules`;
  return (
    <Panel title="Rules" id="rules" aside={`${numberText(rules.length)} of at most ${SOURCE_RULES_MAX}`}>
      <p class="soft">
        Classify sources by what their addresses are. The first rule that matches counts. The class of a source itself
        overrides it.
      </p>
      {rules.length > 0 && (
        <ol class="rule-list">
          {rules.map((rule, at) => (
            <li key={at}>
              <span>{ruleWords(rule)}</span>
              <ClassBadge classification={rule.classification} />
              <PostForm action={`/dmarc/${id}/rules/remove`}>
                <input type="hidden" name="rule" value={JSON.stringify(rule)} />
                <Button kind="quiet" icon="trash-2">
                  Remove
                </Button>
              </PostForm>
            </li>
          ))}
        </ol>
      )}
      <details open={isWrong}>
        <summary>Add a rule</summary>
        <RuleForm id={id} />
      </details>
    </Panel>
  );
};

const RuleForm = ({ id }: { readonly id: string }) => (
  <PostForm action={`/dmarc/${id}/rules`} class="form">
    <Field
      name="reverse_name"
      label="Reverse name"
      placeholder="example.net"
      hint="A domain that the confirmed reverse name is at or below; or none, or generic."
    />
    <Field name="network" label="Network" placeholder="192.0.2.0/24" isMono />
    <Field name="asn" label="AS number" type="number" min={1} placeholder="64500" />
    <Field name="country" label="Country of the network" placeholder="DE" />
    <SelectField
      name="authenticated"
      label="Authentication"
      options={[
        ["", "Any"],
        ["true", "SPF or DKIM passes for some domain"],
        ["false", "SPF and DKIM fail for every domain"],
      ]}
    />
    <SelectField
      name="classification"
      label="Class"
      options={CLASSIFICATIONS.map((one) => [one, CLASS_WORDS[one].text] as const)}
    />
    <div class="actions">
      <Button kind="main">Add the rule</Button>
    </div>
  </PostForm>
);

/** The choice that restores the automatic class. */
const AUTOMATIC = "automatic";

const CLASS_OPTIONS: ReadonlyArray<readonly [string, string]> = [
  ...CLASSIFICATIONS.map((one) => [one, CLASS_WORDS[one].text] as const),
  [AUTOMATIC, "Automatic"],
];

/** The path of a source's page. */
export const sourceHref = (domainId: string, key: string): string =>
  `/dmarc/${domainId}/sources/${encodeURIComponent(key.toWellFormed())}`;

export const ClassBadge = ({ classification }: { readonly classification: Classification }) => {
  const { kind, text } = CLASS_WORDS[classification];
  return <Badge kind={kind}>{text}</Badge>;
};

/** Leads back to this page after a form. */
export const BackField = () => <input type="hidden" name="back" value={usePage().url} />;

/** The class of a source, which opens a choice of another one. */
export const ClassEditor = ({ domainId, source }: { readonly domainId: string; readonly source: Source }) => (
  <details class="editor">
    <summary title={CLASS_WORDS[source.classification].meaning}>
      <ClassBadge classification={source.classification} />
      <span class="unseen">Change the class of {source.name}</span>
    </summary>
    <PostForm action={`${sourceHref(domainId, source.key)}/class`} class="inline-form">
      <BackField />
      <SelectField
        name="classification"
        label={`Class of ${source.name}`}
        isLabelHidden
        value={source.classified_by === "user" ? source.classification : AUTOMATIC}
        options={CLASS_OPTIONS}
      />
      <Button>Save</Button>
    </PostForm>
  </details>
);

const BULK_FORM = "classify-sources";

/** Selects a source for the form below its table. */
export const SourceCheck = ({ source }: { readonly source: Source }) => (
  <CheckField name="keys" value={source.key} label={`Select ${source.name}`} isLabelHidden form={BULK_FORM} />
);

/** Classifies the sources that are ticked in the table above. */
export const BulkClassForm = ({ domainId }: { readonly domainId: string }) => (
  <PostForm action={`/dmarc/${domainId}/classify`} class="inline-form table-form" id={BULK_FORM}>
    <BackField />
    <SelectField name="classification" label="Class of the selected sources" options={CLASS_OPTIONS} />
    <Field name="note" label="Note (optional)" placeholder="Why, for your colleagues" />
    <Button>Classify the selected</Button>
  </PostForm>
);

/** Classifies one source, with a note. */
export const ClassNoteForm = ({
  domainId,
  source,
  note,
}: {
  readonly domainId: string;
  readonly source: Source;
  readonly note: string | null;
}) => (
  <PostForm action={`${sourceHref(domainId, source.key)}/class`} class="form">
    <BackField />
    <SelectField
      name="classification"
      label="Class"
      value={source.classified_by === "user" ? source.classification : AUTOMATIC}
      options={CLASS_OPTIONS}
      hint="Your class overrides the automatic one, until you choose Automatic."
    />
    <Field name="note" label="Note" value={note} hint="Why, for your colleagues." />
    <div class="actions">
      <Button kind="main">Save the class</Button>
    </div>
  </PostForm>
);

const NOTE_CHARACTERS_MAX = 500;
const KEYS_MAX = 500;

const classFields = {
  classification: z.enum([...CLASSIFICATIONS, AUTOMATIC]),
  note: optionalText(NOTE_CHARACTERS_MAX),
  back: z.string().default(""),
};
const keySchema = z.string().refine(isSourceKey, "There is no such source");

/** Back to the page of DMARC that a form stood on. */
export const backPath = (viewer: Viewer, back: string, fallback: string): string =>
  isOwnPath(back) && back.startsWith(viewer.href("/dmarc")) ? back : viewer.href(fallback);

const classWords = (classification: (typeof classFields)["classification"]["_output"]): string =>
  classification === AUTOMATIC ? "classified automatically" : CLASS_WORDS[classification].text.toLowerCase();

/** Classify one source, or all that are ticked in a table. */
export const classActions = ({ domains, classifier }: DmarcPageUseCases): readonly PageRoute[] => {
  const classify = (
    viewer: Viewer,
    id: string,
    keys: readonly string[],
    form: z.output<z.ZodObject<typeof classFields>>,
  ) => {
    const { classification, note } = form;
    return classifier.classify(() => domains.find(viewer.caller, id), {
      keys,
      note,
      classification: classification === AUTOMATIC ? null : classification,
    });
  };
  return [
    formAction(
      {
        path: "/dmarc/:id/sources/:key/class",
        params: z.object({ id: z.string(), key: z.string() }),
        form: z.object(classFields),
      },
      async ({ viewer, params: { id, key }, form }) => {
        const [source] = await classify(viewer, id, [key], form);
        const back = backPath(viewer, form.back, `/dmarc/${id}/sources`);
        return redirectToPath(back, { ok: `${source?.name ?? key} is now ${classWords(form.classification)}.` });
      },
    ),
    formAction(
      {
        path: "/dmarc/:id/classify",
        params: z.object({ id: z.string() }),
        form: z.object({ ...classFields, keys: listOf(keySchema) }),
      },
      async ({ viewer, params: { id }, form }) => {
        domains.find(viewer.caller, id);
        const back = backPath(viewer, form.back, `/dmarc/${id}/sources`);
        const keys = [...new Set(form.keys)];
        if (keys.length === 0) return redirectToPath(back, { bad: "Tick the sources to classify first." });
        if (keys.length > KEYS_MAX)
          return redirectToPath(back, { bad: `At most ${KEYS_MAX} sources can be classified at once.` });
        await classify(viewer, id, keys, form);
        const what = `${countText(keys.length, "source")} ${keys.length === 1 ? "is" : "are"}`;
        return redirectToPath(back, { ok: `${what} now ${classWords(form.classification)}.` });
      },
    ),
  ];
};

const COLUMNS: readonly Column[] = [
  { title: "Select", isTitleHidden: true },
  { title: "Source", isMain: true },
  { title: "Class" },
  { title: "Messages", align: "end" },
  { title: "Aligned", align: "end" },
  { title: "SPF · DKIM", isText: true },
];

const ADDRESSES_SHOWN = 2;
const NAME_CHARACTERS = 36;

/** Where a source sends from, in a few words. */
const placeWords = ({ kind, addresses, address_count: count, network_count, dkim, spf }: Source): string => {
  if (kind === "unauthenticated") return `${countText(count, "address", "addresses")}, no proper reverse names`;
  const name = spf[0]?.domain ?? dkim[0]?.domain;
  if (count > ADDRESSES_SHOWN || addresses.length === 0)
    return [name, countText(count, "address", "addresses"), count > 1 ? countText(network_count, "network") : ""]
      .filter((text) => text !== undefined && text !== "")
      .join(" · ");
  return addresses
    .map(({ ip, reverse_name, confirmed }) => (confirmed ? middleCut(reverse_name ?? ip, NAME_CHARACTERS) : ip))
    .join(", ");
};

const rowOf = (domainId: string, query: string, source: Source): TableRow => ({
  key: source.key,
  cells: [
    <SourceCheck source={source} />,
    <>
      <Link href={`${sourceHref(domainId, source.key)}${query}`} class="plain">
        {source.name}
      </Link>
      <span class="second place">{placeWords(source)}</span>
    </>,
    <ClassEditor domainId={domainId} source={source} />,
    numberText(source.messages),
    <Percent part={source.aligned} whole={source.messages} />,
    <span class="words">{failureWords(source)}</span>,
  ],
});

/** Sources with their class, which can be changed in place. `query` is added to their links. */
export const SourceTable = ({
  domainId,
  sources,
  query = "",
}: {
  readonly domainId: string;
  readonly sources: readonly Source[];
  readonly query?: string;
}) => <Table caption="Who sends" columns={COLUMNS} rows={sources.map((source) => rowOf(domainId, query, source))} />;
