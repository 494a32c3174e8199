// Whether a route reads a request body whole before it forwards it; knows no route.
import { oneOf } from "./fields.ts";
import { since } from "./resource.ts";

export const requestBuffering = since(
  9,
  oneOf(["off", "on"], {
    default: "off",
    description:
      "on: the gateway reads the whole request body, in memory or in a file, before it forwards the request, with Content-Length. For targets that cannot read bodies of unknown length, such as CGI and PHP-FPM; off: the body is forwarded as it arrives",
    form: {
      title: "Request buffering",
      help: "Reads the whole body before it is forwarded, for targets that need its length, such as PHP",
      options: { off: "Off: forward as it arrives", on: "On: read the whole body first" },
      group: "forward",
      order: 2,
    },
  }),
);
