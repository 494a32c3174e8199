// What clients get in maintenance, of a route or an application; knows neither.
import { Type as t } from "@sinclair/typebox";
import { cidr, integer, listOf } from "./fields.ts";

export const maintenanceFields = {
  retry_after: integer(300, {
    minimum: 0,
    maximum: 31_536_000,
    description: "Seconds in Retry-After",
    form: { title: "Retry-After", help: "Value of the Retry-After header", unit: "s" },
  }),
  html: t.String({
    default: "",
    maxLength: 262_144,
    description: "HTML page; empty: the built-in one",
    form: { title: "Page", help: "HTML. Empty: the built-in one", input: "code" },
  }),
  bypass_cidrs: listOf(cidr, "Client networks that are served as usual", {
    form: {
      title: "Exempt networks",
      help: "Such as your own, to test the application",
      example: "192.168.0.0/16",
    },
  }),
};
