import { SaxesParser } from "saxes";

/** Ceilings of what the parser gathers until a token ends. Reports stay far below: their longest value is a sentence. */
export const TOKEN_LIMITS = {
  /** Of a text, an attribute's value, a comment, a section or an instruction. What is longer is cut. */
  textCharactersMax: 64 * 1024,
  /** What is kept of one that is cut. */
  textCharactersKept: 4096,
  /** Of the name of an element, an attribute, an entity or an instruction's target. */
  nameCharactersMax: 1024,
} as const;

/** The characters given to the parser at a time: how far it can run beyond a ceiling before it is stopped. */
const CHUNK_CHARACTERS = 16_384;

/** Where the parser gathers names; and what ought to become `<!--` or `<![CDATA[`. */
const NAME_FIELDS = ["name", "piTarget", "entity", "openWakaBang"] as const;

/** The five entities of XML and nothing that an object inherits: `&constructor;` is no entity. */
const ENTITIES: Readonly<Record<string, string>> = { amp: "&", gt: ">", lt: "<", quot: '"', apos: "'" };

/**
 * A parser whose memory is bounded whatever it reads.
 *
 * It gathers a token piece by piece until the token ends, without a ceiling of its own: 64 MB of one CDATA section
 * would take gigabytes. The fields it gathers in are not in its declarations, so they are checked here.
 */
export const createXmlParser = () => {
  const parser = new SaxesParser({ xmlns: false, position: false });
  parser.ENTITIES = Object.assign(Object.create(null), ENTITIES);

  const gathered = (field: string): string => {
    const value: unknown = Reflect.get(parser, field);
    if (typeof value !== "string") throw new Error(`the XML parser has no field ${field} any more`);
    return value;
  };

  /** Cuts the token that has not ended yet; false when it is a name, which cannot be cut. */
  const bound = (): boolean => {
    const text = gathered("text");
    if (text.length > TOKEN_LIMITS.textCharactersMax) {
      Reflect.set(parser, "text", text.slice(0, TOKEN_LIMITS.textCharactersKept));
    }
    return NAME_FIELDS.every((field) => gathered(field).length <= TOKEN_LIMITS.nameCharactersMax);
  };

  return {
    parser,
    /** Reads on until `isOver` says so. False when a name in it has no end: it is no XML that anybody wrote. */
    read(piece: string, isOver: () => boolean): boolean {
      for (let at = 0; at < piece.length && !isOver(); at += CHUNK_CHARACTERS) {
        parser.write(piece.slice(at, at + CHUNK_CHARACTERS));
        if (!bound()) return false;
      }
      return true;
    },
  };
};
