import { splitRecord } from "../../records/record/record-tags.ts";

/** The tags of a `name=value;` record by name in lower case; of a tag that stands twice the first. */
export const readTags = (text: string): ReadonlyMap<string, string> => {
  const tags = new Map<string, string>();
  for (const part of splitRecord(text)) {
    if (part.kind === "tag" && !tags.has(part.tag.name)) tags.set(part.tag.name, part.tag.value);
  }
  return tags;
};
