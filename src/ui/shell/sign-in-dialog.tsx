// The sign-in dialog over the current page, so that unsaved input is not lost; knows no page.
import { Anchor, Modal, Stack, Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState, useSyncExternalStore } from "react";
import { useConnection } from "../api/connection-context.ts";
import { queryKeys } from "../api/queries.ts";
import type { Schemas } from "../api/resources.ts";
import { SignInForm } from "./sign-in-form.tsx";
import { SIGNED_IN_PATH, SsoButton } from "./sso-button.tsx";

type Me = Schemas["Me"];

/** Opens after status 401; signing in sends the request again. */
export function SignInDialog() {
  const { gate } = useConnection();
  const client = useQueryClient();
  const isClosed = useSyncExternalStore(gate.subscribe, gate.isClosed);
  const before = client.getQueryData<Me | null>(queryKeys.me) ?? null;
  const hadUsers = before === null || before.authentication === "enabled";
  const resume = (next: Me) => {
    const isOther = before?.user !== null && before?.user?.id !== next.user?.id;
    // The pending requests belong to another user and must not run under this name.
    if (isOther) return startOver();
    client.setQueryData(queryKeys.me, next);
    gate.open();
  };
  return (
    <Modal
      opened={isClosed}
      onClose={() => {}}
      withCloseButton={false}
      closeOnEscape={false}
      closeOnClickOutside={false}
      title={hadUsers ? "Your session has ended" : "Users were created meanwhile"}
      zIndex={1000}
    >
      {isClosed && <SignInAgain email={before?.user?.email ?? ""} onSignedIn={resume} />}
    </Modal>
  );
}

/** Unsaved input belongs to the previous user. */
function startOver(): void {
  sessionStorage.clear();
  location.assign("/");
}

interface SignInAgainProps {
  readonly email: string;
  readonly onSignedIn: (me: Me) => void;
}

function SignInAgain({ email, onSignedIn }: SignInAgainProps) {
  const [isElsewhere, setElsewhere] = useState(false);
  useSignInElsewhere(isElsewhere, onSignedIn);
  return (
    <Stack>
      <Text size="sm" c="dimmed">
        Sign in to continue. Unsaved input is preserved.
      </Text>
      <SignInForm email={email} onSignedIn={onSignedIn} />
      <SsoButton back={SIGNED_IN_PATH} inNewTab onClick={() => setElsewhere(true)} />
      {isElsewhere && (
        <Text size="sm" role="status">
          Sign in in the other tab; this page continues automatically.
        </Text>
      )}
      <Text size="sm" ta="center">
        <Anchor component="button" type="button" onClick={startOver}>
          Leave this page
        </Anchor>
      </Text>
    </Stack>
  );
}

const ASK_MS = 2000;

/** Detects a sign-in in another tab: when this tab becomes visible, and by polling. */
function useSignInElsewhere(isElsewhere: boolean, onSignedIn: (me: Me) => void): void {
  const connection = useConnection();
  useEffect(() => {
    const ask = () =>
      connection
        .send<Me>("/auth/me", { waitsForSignIn: false })
        .then(({ value }) => onSignedIn(value))
        .catch(() => {
          // Not yet.
        });
    const timer = isElsewhere ? setInterval(ask, ASK_MS) : undefined;
    addEventListener("focus", ask);
    return () => {
      clearInterval(timer);
      removeEventListener("focus", ask);
    };
  }, [connection, isElsewhere, onSignedIn]);
}
