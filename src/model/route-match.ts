// What the parts of a route compare with a request; knows nothing of the router.
import { type Static, Type as t } from "@sinclair/typebox";
import { oneOf } from "./fields.ts";

export const pathMatch = t.Object(
  {
    type: oneOf(["prefix", "exact", "regex"], { description: "How the value is compared" }),
    value: t.String({ minLength: 1, maxLength: 2048, description: "Path or regular expression" }),
  },
  { additionalProperties: false },
);

export type PathMatch = Static<typeof pathMatch>;

/** `/x` prefix, `=/x` exact, `~^/x` regex. */
export function pathMatchOf(path: string | PathMatch): PathMatch {
  if (typeof path !== "string") return path;
  if (path.startsWith("=")) return { type: "exact", value: path.slice(1) };
  if (path.startsWith("~")) return { type: "regex", value: path.slice(1) };
  return { type: "prefix", value: path };
}

/** The text that `pathMatchOf` reads. */
export const pathTextOf = ({ type, value }: PathMatch): string =>
  `${{ prefix: "", exact: "=", regex: "~" }[type]}${value}`;

export const grpcMatch = t.Object(
  {
    service: t.String({
      default: "",
      maxLength: 512,
      pattern: "^[\\w.]*$",
      errorMessage: "must be a gRPC service name such as helloworld.Greeter",
      description: "Full name of the service; empty: any",
      form: { example: "helloworld.Greeter" },
    }),
    method: t.String({
      default: "",
      maxLength: 256,
      pattern: "^\\w*$",
      errorMessage: "must be a gRPC method name such as SayHello",
      description: "Method; empty: all",
      form: { example: "SayHello" },
    }),
  },
  { additionalProperties: false },
);

export const valueMatch = t.Object(
  {
    name: t.String({
      minLength: 1,
      maxLength: 256,
      description: "Name of the header, parameter or cookie",
    }),
    op: oneOf(["equals", "regex", "present", "absent"], {
      default: "equals",
      description: "How the value is compared",
      form: {
        title: "Comparison",
        options: { equals: "is", regex: "matches", present: "exists", absent: "does not exist" },
      },
    }),
    value: t.String({
      default: "",
      maxLength: 2048,
      description: "Value or regular expression",
      form: { when: { op: ["equals", "regex"] } },
    }),
  },
  { additionalProperties: false },
);
