import { z } from "zod";
import { page, type PageRoute } from "../page.ts";
import { usePage } from "../visit.ts";
import { Button } from "../components/form.tsx";
import { Icon } from "../components/icon.tsx";
import { Link } from "../components/inline.tsx";
import { countText } from "../components/figures.tsx";
import { PageHead } from "../components/panel.tsx";
import type { FoundGroup, Search } from "./search.ts";
import { hasRole, roleOfPage } from "../roles.ts";

const PATH = "/search";
const TEXT_CHARACTERS_MAX = 200;

/** `/search`: finds addresses, lists, domains, senders, targets and pages. Scripts show it as a dialog over any page. */
export const createSearchPages = (search: Search): readonly PageRoute[] => [
  page(
    { path: PATH, query: z.object({ q: z.string().trim().max(TEXT_CHARACTERS_MAX).default("") }) },
    async ({ viewer, query: { q } }) => {
      const mayOpen = (path: string): boolean => hasRole(roleOfPage(path), viewer.user);
      const groups = q === "" ? null : await search.find(viewer, q, mayOpen);
      return { title: "Search", section: null, body: <SearchBody text={q} groups={groups} /> };
    },
  ),
];

interface SearchProps {
  readonly text: string;
  /** Null before anything was looked for. */
  readonly groups: readonly FoundGroup[] | null;
}

const SearchBody = ({ text, groups }: SearchProps) => {
  const action = usePage().href(PATH);
  return (
    <>
      <PageHead title="Search" />
      <search id="search">
        <form method="get" action={action} class="find-form">
          <Icon name="search" />
          <input
            type="search"
            name="q"
            value={text}
            maxLength={TEXT_CHARACTERS_MAX}
            placeholder="Address, list, domain, sender, target or page"
            aria-label="Search"
            aria-controls="found"
            autocomplete="off"
            autofocus
            {...{
              "hx-get": action,
              "hx-trigger": "input changed delay:200ms",
              "hx-select": "#found",
              "hx-target": "#found",
              "hx-swap": "outerHTML",
            }}
          />
          <Button>Search</Button>
        </form>
        <FoundList groups={groups} />
      </search>
    </>
  );
};

const FoundList = ({ groups }: Pick<SearchProps, "groups">) => {
  const count = groups?.reduce((sum, { found }) => sum + found.length, 0) ?? 0;
  return (
    <div id="found">
      <p role="status" class="soft small">
        {groups === null
          ? "Addresses are found by how they begin, everything else by any part of its name."
          : count === 0
            ? "Nothing was found."
            : `${countText(count, "result")}.`}
      </p>
      {groups?.map(({ title, found, more }) => (
        <section key={title}>
          <h2>{title}</h2>
          <ul>
            {found.map((one) => (
              <li key={one.path}>
                <Link href={one.path}>
                  <span>{one.title}</span>
                  {one.note !== null && <span class="soft">{one.note}</span>}
                </Link>
              </li>
            ))}
            {more !== null && found.length > 1 && (
              <li>
                <Link href={more}>
                  <span class="soft">All of them</span>
                </Link>
              </li>
            )}
          </ul>
        </section>
      ))}
    </div>
  );
};
