import type { Source } from "../../dmarc/insight/sources/source-response.ts";
import { middleCut } from "../components/copy.tsx";
import { Link } from "../components/link.tsx";
import { countText, numberText, Percent } from "../components/number.tsx";
import { type Column, Table, type TableRow } from "../components/table.tsx";
import { ClassEditor, sourceHref, SourceCheck } from "./source-classes.tsx";
import { failureWords } from "./dmarc-words.ts";

const COLUMNS: readonly Column[] = [
  { title: "Select", isTitleHidden: true, isWide: true },
  { title: "Source" },
  { title: "What it is" },
  { title: "Messages", align: "end", isWide: true },
  { title: "Aligned", align: "end", isWide: true },
  { title: "SPF · DKIM", isWide: true },
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
      <span class="second narrow-only">
        {countText(source.messages, "message")}, <Percent part={source.aligned} whole={source.messages} /> aligned:{" "}
        {failureWords(source)}
      </span>
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
