// Cryptography that plugins may use; only passes on.
export { createToken, hashToken, isSameHash } from "../crypto/token.ts";
export { hashPassword, verifyPassword } from "../crypto/password.ts";
export { passwordHashProblem, verifyForeignPassword } from "../crypto/foreign-password.ts";
export { idTokenProblem, isCanonicalToken } from "../crypto/signed-token.ts";
export { SealError, SecretBox } from "../crypto/secret-box.ts";
