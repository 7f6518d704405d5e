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
