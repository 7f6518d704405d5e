/** The quality value (0 to 1) that `Accept` gives a media type by its name; null when it is not named (RFC 9110 §12.5.1). */
const qualityOf = (accept: string, type: string) => {
  for (const range of accept.toLowerCase().split(",")) {
    const [name = "", ...parameters] = range.split(";").map((part) => part.trim());
    if (name !== type) continue;
    const q = Number(parameters.find((parameter) => parameter.startsWith("q="))?.slice(2) ?? "1");
    return Number.isNaN(q) ? 1 : q;
  }
  return null;
};

/** The media types of rows. NDJSON has no registered one; these are in use. */
const ROW_TYPES = { csv: ["text/csv"], ndjson: ["application/x-ndjson", "application/ndjson"] } as const;

/** The format that a request prefers: CSV or NDJSON if named and JSON has no higher quality value, else JSON. */
export const rowFormatOf = (request: Request): "json" | "csv" | "ndjson" => {
  const accept = request.headers.get("accept") ?? "";
  const qualityOfAny = (types: readonly string[]) => Math.max(...types.map((type) => qualityOf(accept, type) ?? 0));
  const [csv, ndjson, json] = [
    qualityOfAny(ROW_TYPES.csv),
    qualityOfAny(ROW_TYPES.ndjson),
    qualityOfAny(["application/json"]),
  ];
  if (Math.max(csv, ndjson) === 0 || Math.max(csv, ndjson) < json) return "json";
  return csv >= ndjson ? "csv" : "ndjson";
};

/** Whether a request prefers CSV. */
export const wantsCsv = (request: Request): boolean => rowFormatOf(request) === "csv";
