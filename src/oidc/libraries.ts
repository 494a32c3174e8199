// The parts of the libraries that exchanges with a provider use, in a module of its own, which is loaded at first use.
import { CodeChallengeMethod, generateCodeVerifier, generateState, OAuth2Client } from "arctic";
import { createLocalJWKSet, decodeJwt, errors, jwtVerify } from "jose";
import {
  allowInsecureRequests,
  AuthorizationResponseError,
  ClientSecretPost,
  clockSkew,
  clockTolerance,
  customFetch,
  discoveryRequest,
  genericTokenEndpointRequest,
  JSON_ATTRIBUTE_COMPARISON,
  None,
  processAuthorizationCodeResponse,
  processDiscoveryResponse,
  processRefreshTokenResponse,
  processUserInfoResponse,
  skipStateCheck,
  userInfoRequest,
  validateAuthResponse,
} from "oauth4webapi";

/** Named one by one, so that the executable does not contain the rest. */
export const oauth = {
  allowInsecureRequests,
  AuthorizationResponseError,
  ClientSecretPost,
  clockSkew,
  clockTolerance,
  customFetch,
  discoveryRequest,
  genericTokenEndpointRequest,
  JSON_ATTRIBUTE_COMPARISON,
  None,
  processAuthorizationCodeResponse,
  processDiscoveryResponse,
  processRefreshTokenResponse,
  processUserInfoResponse,
  skipStateCheck,
  userInfoRequest,
  validateAuthResponse,
} as const;

export const arctic = {
  CodeChallengeMethod,
  generateCodeVerifier,
  generateState,
  OAuth2Client,
} as const;

export const jose = { createLocalJWKSet, decodeJwt, errors, jwtVerify } as const;
