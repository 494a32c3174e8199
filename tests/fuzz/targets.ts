// All fuzz targets.
import type { FuzzTarget } from "./target.ts";
import { target as archive } from "./targets/archive.ts";
import { target as cacheControl } from "./targets/cache-control.ts";
import { target as cacheFields } from "./targets/cache-fields.ts";
import { target as chunkedBody } from "./targets/chunked-body.ts";
import { target as clientHello } from "./targets/client-hello.ts";
import { target as cookies } from "./targets/cookies.ts";
import { target as der } from "./targets/der.ts";
import { target as dnsMessage } from "./targets/dns-message.ts";
import { target as hpack } from "./targets/hpack.ts";
import { target as http1Connection } from "./targets/http1-connection.ts";
import { target as http2Connection } from "./targets/http2-connection.ts";
import { target as http2Target } from "./targets/http2-target.ts";
import { target as importDocument } from "./targets/import-document.ts";
import { target as proxyHeader } from "./targets/proxy-header.ts";
import { target as redirectAddress } from "./targets/redirect-address.ts";
import { target as requestHead } from "./targets/request-head.ts";
import { target as requestPath } from "./targets/request-path.ts";
import { target as responseHead } from "./targets/response-head.ts";
import { target as router } from "./targets/router.ts";
import { target as websocketFrames } from "./targets/websocket-frames.ts";
import { target as websocketMessages } from "./targets/websocket-messages.ts";

export const targets: readonly FuzzTarget[] = [
  ...[responseHead, chunkedBody, clientHello, proxyHeader, cookies, cacheControl, cacheFields],
  ...[
    redirectAddress,
    requestPath,
    router,
    importDocument,
    archive,
    dnsMessage,
    der,
    http1Connection,
    hpack,
    http2Connection,
    http2Target,
    requestHead,
    websocketFrames,
    websocketMessages,
  ],
];
