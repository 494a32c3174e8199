// A condition on a request: when a plugin runs, which rule of a policy applies; knows nothing of its evaluation.
import { type Static, type TProperties, Type as t } from "@sinclair/typebox";
import { asHostName } from "./host-name.ts";

const words = (description: string, maxItems = 1000) =>
  t.Optional(t.Array(t.String({ minLength: 1, maxLength: 1024 }), { maxItems, description }));

const hostWords = (description: string) =>
  t.Optional(
    t.Array(asHostName(t.String({ minLength: 1, maxLength: 1024 })), {
      maxItems: 1000,
      description,
    }),
  );

/** Name to what its value must be. */
const values = (what: string) =>
  t.Optional(
    t.Record(
      t.String({ minLength: 1, maxLength: 256 }),
      t.Union([t.String({ maxLength: 4096 }), t.Null()]),
      {
        description: `${what} by name: a text that must be equal, "*" for present, null for absent, "~..." for a regular expression`,
      },
    ),
  );

const TIME = "^(?:[01]\\d|2[0-3]):[0-5]\\d$";
const timeOfDay = (description: string) =>
  t.Optional(
    t.String({
      pattern: TIME,
      errorMessage: "must be a time of day, such as 08:30",
      description,
    }),
  );

const days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;

const own = {
  cidr: words("The client is in one of these networks"),
  country: words(
    "The client's country is one of these, ISO 3166-1 (needs settings.geoip.country_db)",
  ),
  asn: t.Optional(
    t.Array(t.Integer({ minimum: 0, maximum: 4_294_967_295 }), {
      maxItems: 1000,
      description: "The client's autonomous system is one of these (needs settings.geoip.asn_db)",
    }),
  ),
  host: hostWords("The host is one of these: `shop.example.com`, `*.example.com`"),
  path: words('The path is one of these: "/x" prefix, "=/x" exact, "~^/x" regular expression'),
  ambiguous_path: t.Optional(
    t.Boolean({
      description:
        "Whether servers may read the path differently: it has parameters behind `;`, an empty segment, or an escaped slash or backslash",
    }),
  ),
  method: words("The method is one of these"),
  header: values("Request headers"),
  query: values("Query parameters"),
  cookie: values("Cookies"),
  consumer: words("The consumer is one of these: id or username"),
  group: words("The consumer is in one of these groups"),
  tls_client: t.Optional(
    t.Boolean({ description: "Whether the client presented a valid certificate" }),
  ),
  time: t.Optional(
    t.Object(
      {
        after: timeOfDay("From this time on, such as `08:00`"),
        before: timeOfDay("Until this time, such as `18:00`; earlier than `after`: over midnight"),
        days: t.Optional(
          t.Array(t.Unsafe<(typeof days)[number]>({ type: "string", enum: [...days] }), {
            maxItems: 7,
            description: "On these days",
          }),
        ),
        timezone: t.Optional(
          t.String({ maxLength: 64, description: "IANA name, such as Europe/Berlin; default UTC" }),
        ),
      },
      { additionalProperties: false, description: "The time of the request" },
    ),
  ),
} satisfies TProperties;

/**
 * All members must hold; of a list, one element is enough. `not` holds a condition that must not hold as a whole. An empty
 * condition always holds.
 */
export const condition = t.Object(
  {
    ...own,
    not: t.Optional(
      t.Object(own, {
        additionalProperties: false,
        description: "A condition that must not hold as a whole",
      }),
    ),
  },
  {
    additionalProperties: false,
    description: "All members must hold; of a list, one element is enough",
  },
);

export type Condition = Readonly<Static<typeof condition>>;
