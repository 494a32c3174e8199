// The page that asks who somebody is; knows no session.
import { Alert, Button, Divider } from "@mantine/core";
import { useStatus } from "../../api/queries.ts";
import type { Schemas } from "../../api/resources.ts";
import { SignInForm } from "../../shell/sign-in-form.tsx";
import { EntranceLayout } from "./entrance-layout.tsx";

interface Props {
  readonly onSignedIn: (me: Schemas["Me"]) => void;
}

export default function SignInPage({ onSignedIn }: Props) {
  const status = useStatus();
  const ssoError = new URLSearchParams(location.search).get("sso_error");
  const back = `${location.pathname}${location.search}`;
  return (
    <EntranceLayout title="Sign in">
      {ssoError !== null && (
        <Alert color="red" role="alert">
          Single sign-on did not work: {ssoError.replaceAll("_", " ")}
        </Alert>
      )}
      <SignInForm onSignedIn={onSignedIn} />
      {status.data?.sso_enabled === true && (
        <>
          <Divider label="or" />
          <Button
            component="a"
            variant="default"
            href={`/api/v1/auth/sso/start?redirect=${encodeURIComponent(back)}`}
          >
            Single sign-on
          </Button>
        </>
      )}
    </EntranceLayout>
  );
}
