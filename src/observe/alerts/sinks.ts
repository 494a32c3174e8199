// The registry of notification sinks by type, without logic.
import type { AlertType } from "../../model/alert.ts";
import type { AnySink } from "./sink.ts";
import smtp from "./smtp.ts";
import webhook from "./webhook.ts";

export const sinks: Readonly<Record<AlertType, AnySink>> = { webhook, smtp };
