// Schemas of alerts, for the description of the API; used for nothing else.
import { type TSchema, Type as t } from "@sinclair/typebox";
import { alertEvents, alertInput, alertTypes } from "../model/alert.ts";
import { identity } from "../model/fields.ts";

const moment = (description: string) =>
  t.Union([t.String({ format: "date-time" }), t.Null()], { description });

const sending = t.Object({
  destination: t.String({ description: "Where messages go, without what is secret" }),
  delivery: t.Object(
    {
      waiting: t.Integer({ description: "Messages that are not delivered yet" }),
      lost: t.Integer({ description: "Messages that were given up since the start" }),
      last_sent_at: moment("When one was delivered last"),
      last_error: t.Union([t.String(), t.Null()], {
        description: "Why the last attempt failed; null: it did not",
      }),
    },
    { description: "How the sending goes" },
  ),
});

const oneWord = (words: readonly string[]) =>
  t.Unsafe<string>({ type: "string", enum: [...words] });

export const alertSchemas: Readonly<Record<string, TSchema>> = {
  Alert: t.Composite([t.Object(identity), alertInput, sending], { title: "Alert" }),
  AlertInput: alertInput,
  AlertType: t.Object(
    {
      type: t.Unsafe<string>({ type: "string", enum: [...alertTypes] }),
      title: t.String({ description: "Its name for people" }),
      schema: t.Unknown({ description: "JSON Schema of `config`; `writeOnly` marks secrets" }),
      example: t.Unknown({ description: "A `config`" }),
    },
    { title: "AlertType" },
  ),
  AlertMessage: t.Object(
    {
      id: t.String({ description: "Also in the message itself" }),
      event: oneWord(alertEvents),
      status: oneWord(["firing", "resolved"]),
      at: t.String({ format: "date-time", description: "When it was told" }),
      since: t.String({ format: "date-time", description: "When it began" }),
      object: t.Object({
        kind: oneWord(["target", "certificate", "service", "route", "worker", "gateway"]),
        id: t.String({ description: "Empty for a worker and the gateway" }),
        name: t.String(),
      }),
      title: t.String({ description: "One line" }),
      message: t.String({ description: "More about it" }),
      delivery: oneWord(["waiting", "delivered", "lost"]),
      detail: t.Union([t.String(), t.Null()], { description: "Why it was lost" }),
    },
    { title: "AlertMessage" },
  ),
  AlertTest: t.Object(
    {
      ok: t.Boolean({ description: "Whether the message was taken" }),
      destination: t.String({ description: "Where it was sent to" }),
      message: t.String({ description: "What happened, for people" }),
      duration_ms: t.Integer({ description: "How long it took" }),
    },
    { title: "AlertTest" },
  ),
};
