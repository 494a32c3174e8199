// The parts list: every plugin that the gateway has; no logic.
import type { AnyPlugin } from "../pdk/definition.ts";
import accessLog from "./access-log.ts";
import accessPolicy from "./access-policy.ts";
import acl from "./acl.ts";
import bandwidthLimit from "./bandwidth-limit.ts";
import basicAuth from "./basic-auth.ts";
import botDetection from "./bot-detection.ts";
import circuitBreaker from "./circuit-breaker.ts";
import compress from "./compress.ts";
import concurrencyLimit from "./concurrency-limit.ts";
import cors from "./cors.ts";
import csrf from "./csrf.ts";
import errorPages from "./error-pages.ts";
import forwardAuth from "./forward-auth.ts";
import hmacAuth from "./hmac-auth.ts";
import ipRestriction from "./ip-restriction.ts";
import jwt from "./jwt.ts";
import keyAuth from "./key-auth.ts";
import ldapAuth from "./ldap-auth.ts";
import mirror from "./mirror.ts";
import mtlsAuth from "./mtls-auth.ts";
import oidc from "./oidc.ts";
import otelTracing from "./otel-tracing.ts";
import rateLimit from "./rate-limit.ts";
import redirect from "./redirect.ts";
import requestId from "./request-id.ts";
import requestSizeLimit from "./request-size-limit.ts";
import requestValidation from "./request-validation.ts";
import respond from "./respond.ts";
import responseCache from "./response-cache.ts";
import script from "./script.ts";
import securityHeaders from "./security-headers.ts";
import trafficSplit from "./traffic-split.ts";
import transform from "./transform.ts";
import wafLite from "./waf-lite.ts";

export const plugins: readonly AnyPlugin[] = [
  accessLog,
  accessPolicy,
  acl,
  bandwidthLimit,
  basicAuth,
  botDetection,
  circuitBreaker,
  compress,
  concurrencyLimit,
  cors,
  csrf,
  errorPages,
  forwardAuth,
  hmacAuth,
  ipRestriction,
  jwt,
  keyAuth,
  ldapAuth,
  mirror,
  mtlsAuth,
  oidc,
  otelTracing,
  rateLimit,
  redirect,
  requestId,
  requestSizeLimit,
  requestValidation,
  respond,
  responseCache,
  script,
  securityHeaders,
  trafficSplit,
  transform,
  wafLite,
];
