/** What a relay calls a session. Source: docs/protocol.md#sessions. */
export const SESSION_ID = /^ses_[0-9a-hjkmnp-tv-z]{26}$/;
