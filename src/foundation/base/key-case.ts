/** A JSON value with its keys in snake case, as the API has them: `discoveryMethod` → `discovery_method`. */
export const snakeKeys = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(snakeKeys);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [snakeCase(key), snakeKeys(item)]));
};

/** The same object with its own keys in camel case: `webhook_url` → `webhookUrl`. Nested objects stay as they are. */
export const camelKeys = (fields: object) =>
  Object.fromEntries(Object.entries(fields).map(([key, item]) => [camelCase(key), item]));

const snakeCase = (key: string) => key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
const camelCase = (key: string) => key.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
