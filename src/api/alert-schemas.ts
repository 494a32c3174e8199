// Response schemas of alerts; used for the API description only.
import { type TSchema, Type as t } from "@sinclair/typebox";
import { alertEvents, alertTypes } from "../model/alert.ts";

const oneWord = (words: readonly string[]) =>
  t.Unsafe<string>({ type: "string", enum: [...words] });

export const alertSchemas: Readonly<Record<string, TSchema>> = {
  AlertType: t.Object(
    {
      type: t.Unsafe<string>({ type: "string", enum: [...alertTypes] }),
      title: t.String({ description: "Display name" }),
      schema: t.Unknown({ description: "JSON Schema of `config`; `writeOnly` marks secrets" }),
      example: t.Unknown({ description: "A `config`" }),
    },
    { title: "AlertType" },
  ),
  AlertMessage: t.Object(
    {
      id: t.String({ description: "Also in the notification itself" }),
      event: oneWord(alertEvents),
      status: oneWord(["firing", "resolved"]),
      at: t.String({ format: "date-time", description: "When it was sent" }),
      since: t.String({ format: "date-time", description: "When the event began" }),
      object: t.Object({
        kind: oneWord(["target", "certificate", "service", "route", "worker", "gateway", "node"]),
        id: t.String({ description: "Empty for workers and the gateway" }),
        name: t.String(),
      }),
      title: t.String({ description: "Summary, one line" }),
      message: t.String({ description: "Details" }),
      delivery: oneWord(["waiting", "delivered", "lost"]),
      detail: t.Union([t.String(), t.Null()], { description: "Why it was dropped" }),
    },
    { title: "AlertMessage" },
  ),
  AlertTest: t.Object(
    {
      ok: t.Boolean({ description: "Whether the destination accepted the notification" }),
      destination: t.String({ description: "Destination" }),
      message: t.String({ description: "Result in one sentence" }),
      duration_ms: t.Integer({ description: "Duration in milliseconds" }),
    },
    { title: "AlertTest" },
  ),
};
