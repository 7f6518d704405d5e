/** The parameters of a page's URL, for links that change one of them. */
export const withParameters = (url: string, changes: Readonly<Record<string, string | null>>): string => {
  const [path = "/", query = ""] = url.split("?");
  const parameters = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes))
    if (value === null) parameters.delete(name);
    else parameters.set(name, value);
  const text = parameters.toString();
  return text === "" ? path : `${path}?${text}`;
};

/** The query of a page's URL on another path: the same filters for its export. The cursor belongs to the page only. */
export const withPath = (url: string, path: string): string => {
  const [, query = ""] = url.split("?");
  return withParameters(query === "" ? path : `${path}?${query}`, { cursor: null });
};
