"""What a connector is made of, its connections apart: they outlast each of them."""

from collections.abc import Callable

from .address import relay_address
from .background import Background
from .check_online import CheckOnline
from .clock import Clock
from .conversations import Conversations
from .credentials.own_credential import OwnCredential, OwnCredentialOptions
from .delivery_judge import DeliveryJudge
from .emitter import Emitter
from .errors import RelayError
from .first_start import FirstStart
from .http import HttpClient
from .inbox import Inbox
from .options import ConnectorOptions
from .own_envelopes import OwnEnvelopes
from .peers import Peers
from .presence import Presence, PresenceOptions, Registration
from .presence_watch import PresenceWatch
from .receipts.session_records import SessionRecords
from .replay_guard import ReplayGuard
from .sealing.own_sealing_keys import OwnSealingKeys
from .self_test import SelfTest
from .send_queue import SendQueue
from .signer import Signer


class Parts:
    def __init__(
        self,
        options: ConnectorOptions,
        background: Background,
        not_registered: Callable[[], None],
        renewed: Callable[[], None],
        ended: Callable[[RelayError], None],
    ) -> None:
        """not_registered: the relay says that the agent is not. renewed: there is another credential to register with.
        ended: the connector cannot go on. Does no I/O. Raises `invalid_key`, `invalid_issuer`."""
        self._options = options
        self.address = relay_address(options.url, options.http_url)
        self.clock = Clock()
        self.emitter = Emitter()
        self.sessions = SessionRecords(options.agent)
        self._http = HttpClient(options.environment)
        self.check_online = CheckOnline(self.address.base, self._http)
        self.presence_watch = PresenceWatch(self.check_online, options.max_pending, background)
        self.send_queue = SendQueue(
            self.clock, options.max_pending, not_registered, background, lambda: self.first_start.failure
        )
        self.first_start = FirstStart(
            options.agent,
            self.check_online,
            SelfTest(self.address.base, self._http),
            options.take_over,
            background,
            self.failed,
            ended,
        )
        self._signer = Signer(options.key, self.clock)
        sealing_keys = OwnSealingKeys(self.clock, options.sealing_keys)
        self.credential = self._own_credential(sealing_keys, renewed, background)
        peers = Peers(options.trust, options.require_verified, self.address, self.clock, self._http, background)
        self.guard = ReplayGuard(self.clock, options.max_delivery_age_s, peers.verifier.is_pinned)
        self.envelopes = OwnEnvelopes(
            options.agent, self._signer, self.credential, self.send_queue, self.sessions, peers
        )
        self.conversations = Conversations(
            self.envelopes, self.presence_watch, peers.verifier, options.seal == "required", options.max_pending
        )
        judge = DeliveryJudge(
            agent=options.agent,
            verifier=peers.verifier,
            replay_guard=self.guard,
            require_verified=options.require_verified,
            sealing_keys=sealing_keys,
            sessions=self.sessions,
            replier=self.conversations.reply,
        )
        self.inbox = Inbox(judge, self.conversations, self.emitter, options.max_inbox, background)

    def failed(self, error: RelayError) -> None:
        """What belongs to no call."""
        self.emitter.emit("error", error)

    def presence(self) -> Presence:
        """The registers and heartbeats of one connection."""
        credential = self.credential
        listed = [Registration(self._signer, None)]
        return Presence(
            PresenceOptions(
                agent=self._options.agent,
                relay=self.address.host,
                accept_from=self._options.accept_from,
                clock=self.clock,
                before_register=self.first_start.before_register,
                registrations=(lambda: listed) if credential is None else credential.registrations,
                presented=(lambda _: None) if credential is None else credential.presented,
            )
        )

    def stop(self, error: RelayError | None) -> None:
        """error: what ended the connector; None when it was closed."""
        reason = error or RelayError("closed")
        if self.credential is not None:
            self.credential.stop()
        self.first_start.stop()
        self._http.stop()
        self.send_queue.end(reason)
        self.conversations.end(reason)
        self.inbox.end(error)

    def _own_credential(
        self, sealing_keys: OwnSealingKeys, renewed: Callable[[], None], background: Background
    ) -> OwnCredential | None:
        if self._options.credential is None:
            return None
        return OwnCredential(
            OwnCredentialOptions(
                source=self._options.credential,
                agent=self._options.agent,
                clock=self.clock,
                signer=self._signer,
                sealing_keys=sealing_keys,
                needs=self.send_queue.needs,
                renewed=renewed,
                failed=self.failed,
                background=background,
            )
        )
