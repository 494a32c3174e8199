// Asks to sign in again over whatever page is open, so that nothing typed there is lost; knows no page.
import { Anchor, Modal, Stack, Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState, useSyncExternalStore } from "react";
import { useConnection } from "../api/connection-context.ts";
import { queryKeys } from "../api/queries.ts";
import type { Schemas } from "../api/resources.ts";
import { SignInForm } from "./sign-in-form.tsx";
import { SIGNED_IN_PATH, SsoButton } from "./sso-button.tsx";

type Me = Schemas["Me"];

/** Opens when a request was answered with 401; signing in sends it again. */
export function SignInDialog() {
  const { gate } = useConnection();
  const client = useQueryClient();
  const isClosed = useSyncExternalStore(gate.subscribe, gate.isClosed);
  const before = client.getQueryData<Me | null>(queryKeys.me) ?? null;
  const hadUsers = before === null || before.authentication === "enabled";
  const goOn = (next: Me) => {
    const isOther = before?.user !== null && before?.user?.id !== next.user?.id;
    // What waits was meant by somebody else, and must not be done in another name.
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
      {isClosed && <Question email={before?.user?.email ?? ""} onSignedIn={goOn} />}
    </Modal>
  );
}

/** Whatever was typed here belongs to whoever was signed in before. */
function startOver(): void {
  sessionStorage.clear();
  location.assign("/");
}

interface QuestionProps {
  readonly email: string;
  readonly onSignedIn: (me: Me) => void;
}

function Question({ email, onSignedIn }: QuestionProps) {
  const [isElsewhere, setElsewhere] = useState(false);
  useSignInElsewhere(isElsewhere, onSignedIn);
  return (
    <Stack>
      <Text size="sm" c="dimmed">
        Sign in to go on where you were. What you have typed is still there.
      </Text>
      <SignInForm email={email} onSignedIn={onSignedIn} />
      <SsoButton back={SIGNED_IN_PATH} inNewTab onClick={() => setElsewhere(true)} />
      {isElsewhere && (
        <Text size="sm" role="status">
          Sign in in the other tab; this page goes on by itself.
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

/** Notices that somebody has signed in in another tab: at once when this one is looked at, and by asking while one is open. */
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
