// The sign-in page; knows no session.
import { Alert } from "@mantine/core";
import type { Schemas } from "../../api/resources.ts";
import { SignInForm } from "../../shell/sign-in-form.tsx";
import { SsoButton } from "../../shell/sso-button.tsx";
import { EntranceLayout } from "./entrance-layout.tsx";
import { ssoErrorText } from "./sso-errors.ts";

interface Props {
  readonly onSignedIn: (me: Schemas["Me"]) => void;
}

const SSO_ERROR = "sso_error";

export default function SignInPage({ onSignedIn }: Props) {
  const here = new URL(location.href);
  const ssoError = here.searchParams.get(SSO_ERROR);
  here.searchParams.delete(SSO_ERROR);
  const back = `${here.pathname}${here.search}`;
  return (
    <EntranceLayout title="Sign in">
      {ssoError !== null && (
        <Alert color="red" role="alert" title="Single sign-on failed">
          {ssoErrorText(ssoError)}
        </Alert>
      )}
      <SignInForm
        onSignedIn={(me) => {
          history.replaceState(null, "", back);
          onSignedIn(me);
        }}
      />
      <SsoButton back={back} />
    </EntranceLayout>
  );
}
